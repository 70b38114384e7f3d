#!/usr/bin/env bash
# run_examples.sh FOREBAY: every curl example of docs/api.md, against a server with the embedded model.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
command -v curl >/dev/null || { echo "skipped: there is no curl"; exit 77; }
[[ -e $here/../../models/pebble.gguf ]] || { echo "skipped: models/pebble.gguf is not there"; exit 77; }
source "$here/serve_for_tests.sh"
serve_for_tests "$1"
mapfile -t examples < <(sed -n '/^```bash$/,/^```$/{/^curl /p}' "$here/../../docs/api.md")
((${#examples[@]} >= 10)) || { echo "only ${#examples[@]} examples found"; exit 1; }
curl() { command curl --fail-with-body --max-time 60 "$@"; }
failed=0
for example in "${examples[@]}"; do
  if answer=$(eval "$example") && [[ -n $answer ]]; then
    echo "ok: ${example:0:70}"
  else
    echo "FAILED: $example"$'\n'"$answer"
    failed=1
  fi
done
exit "$failed"
