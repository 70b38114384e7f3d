#!/bin/bash
# Builds for 64-bit ARM on an x86 Debian and runs the kernels' tests by emulation:
#   tools/arm64.sh [TARGET...]      default: kernels_tests
# Needs g++-12-aarch64-linux-gnu and qemu-user. The libraries come from the same mirror as this system's, unpacked
# under build/arm64/root; nothing is installed, and root is not needed.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/packages.sh
root=$PWD/build/arm64/root
for tool in aarch64-linux-gnu-g++-12 qemu-aarch64; do
  command -v "$tool" >/dev/null || die "$tool is missing: apt-get install g++-12-aarch64-linux-gnu qemu-user"
done

if [[ ! -d $root/usr/lib/aarch64-linux-gnu ]]; then
  apt=$PWD/build/arm64/apt
  mkdir -p "$apt"/{lists,archives}/partial
  : >"$apt/status"
  settings=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$apt" -o Dir::State::Lists="$apt/lists"
            -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" -o Dir::Cache::Archives="$apt/archives"
            -o APT::Sandbox::User=)
  say "fetching libraries for arm64"
  apt-get "${settings[@]}" update >/dev/null
  libraries=()
  for package in "${build_packages[@]}" libgtest-dev libbenchmark-dev; do
    [[ $package != *-dev ]] || libraries+=("$package")
  done
  apt-get "${settings[@]}" -y --no-install-recommends --download-only install libstdc++6 libc6-dev "${libraries[@]}" >/dev/null
  for package in "$apt"/archives/*.deb; do dpkg -x "$package" "$root"; done
fi

targets=("$@")
((${#targets[@]} > 0)) || targets=(kernels_tests)
cmake -S . -B build/arm64 -G Ninja --toolchain cmake/aarch64-linux.cmake -DFOREBAY_SYSROOT="$root" >/dev/null
cmake --build build/arm64 --target "${targets[@]}"
for target in "${targets[@]}"; do
  if [[ $target == *_tests ]]; then qemu-aarch64 -L "$root" "$(find build/arm64 -name "$target" -type f)"; fi
done
