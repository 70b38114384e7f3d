#!/usr/bin/env bash
# Lays out all C++ files with clang-format; with --check only says which differ, and fails.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ensure_packages "to format" "${format_packages[@]}"
# Files of others in the tree are left alone; an archive without git has none.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  mapfile -t files < <(git ls-files '*.h' '*.cpp')
else
  mapfile -t files < <(find include src tests bench -name '*.h' -o -name '*.cpp')
fi
case ${1-} in
  "") clang-format -i "${files[@]}" ;;
  --check) clang-format --dry-run -Werror "${files[@]}" && say "${#files[@]} files are laid out" ;;
  *) say "unknown option $1: --check or nothing"; exit 2 ;;
esac
