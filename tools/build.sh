#!/usr/bin/env bash
# Configures and builds. Run: builds build/release/forebay. Sourced: gives run, test and others its functions.
# shellcheck source-path=SCRIPTDIR

set -o pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tools/packages.sh"

# configure PRESET [-DNAME=VALUE...]: does nothing when the build folder has these settings already.
configure() {
  local preset=$1
  local dir=$root/build/$preset
  shift
  # A tree that was moved or copied carries a cache of the old place, which cmake refuses.
  if [[ -f $dir/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
    rm -rf "$dir"
  fi
  local setting up_to_date=true
  [[ -f $dir/build.ninja ]] || up_to_date=false
  for setting in "$@"; do
    setting=${setting#-D}
    grep -qx "${setting%%=*}:[A-Z]*=${setting#*=}" "$dir/CMakeCache.txt" 2>/dev/null || up_to_date=false
  done
  if $up_to_date; then return 0; fi
  mkdir -p "$dir"
  (cd "$root" && cmake --preset "$preset" "$@") </dev/null >"$dir/configure.log" 2>&1 || {
    cat "$dir/configure.log" >&2
    die "cmake failed for preset $preset (shown above)"
  }
}

# Reads ninja's output, keeps it in a log, and shows how far it is on one line of a terminal.
show_progress() {
  local what=$1 log=$2 line terminal=false
  [[ -t 2 ]] && terminal=true
  : >"$log"
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    if $terminal && [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      printf '\r\033[Kforebay: building %s %d/%d' "$what" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" >&2
    fi
  done
  if $terminal; then printf '\r\033[K' >&2; fi
}

# build PRESET TARGET...: short when it works, everything the compiler said when it does not.
build() {
  local preset=$1
  local dir=$root/build/$preset log=$root/build/$preset/build.log start=$SECONDS
  shift
  ninja -C "$dir" -j "$(nproc)" "$@" </dev/null 2>&1 | show_progress "$*" "$log" || {
    grep -vE '^\[[0-9]+/[0-9]+\] ' "$log" >&2  # without the steps that worked
    die "the build failed (shown above)"
  }
  if ! grep -q '^ninja: no work to do' "$log"; then say "built $* ($preset) in $((SECONDS - start)) s"; fi
}

# The program alone. Tests stay as configured, so that ./run and ./test share one build folder.
build_forebay() {
  ensure_packages "to build" "${build_packages[@]}"
  if [[ -f $root/build/release/build.ninja ]]; then configure release; else configure release -DFOREBAY_TESTS=OFF; fi
  build release forebay
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  build_forebay
fi
