#!/usr/bin/env bash
# run.sh PYTHON FOREBAY COMMAND [PATH]: tools/peers.py, or exit code 77 where something it needs is absent.
set -euo pipefail
python=$1 forebay=$2 command=$3 path=${4-}
skip() { echo "skipped: $1 (see docs/peers.md)"; exit 77; }
command -v "$python" >/dev/null || skip "there is no $python"
[[ -z $path || -e $path ]] || skip "there is no $path"
exec "$python" "$(dirname "$0")/../../tools/peers.py" --forebay "$forebay" "$command" ${path:+"$path"}
