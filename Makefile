# A front for the scripts. make run ARGS="-p Hello", make test ARGS=--fast, make install PREFIX=/usr
PREFIX ?= /usr/local
ARGS ?=

.PHONY: build run test bench format clean install

build:
	@tools/build.sh

run:
	@./run $(ARGS)

test:
	@./test $(ARGS)

bench:
	@tools/bench.sh $(ARGS)

format:
	@tools/format.sh

clean:
	rm -rf build

install: build
	cmake --install build/release --prefix $(PREFIX)
