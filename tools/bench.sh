#!/usr/bin/env bash
# Builds the benchmarks and runs those whose name contains the argument, or all: tools/bench.sh [NAME]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"

ensure_packages "to build benchmarks" "${build_packages[@]}" "${bench_packages[@]}"
if [[ -f $root/build/release/build.ninja ]]; then
  configure release -DFOREBAY_BENCH=ON
else
  configure release -DFOREBAY_BENCH=ON -DFOREBAY_TESTS=OFF
fi
build release benchmarks
shopt -s nullglob
for program in "$root"/build/release/bench/*"${1-}"*_bench; do
  say "${program##*/}"
  "$program"
done
