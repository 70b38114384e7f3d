#!/usr/bin/env bash
# run_clients.sh PYTHON FOREBAY [VENV]: the real clients, of the versions in requirements.txt. With VENV they are
# installed there first. Exit code 77 where they cannot be had.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
python=$1 forebay=$2 venv=${3-}
skip() { echo "skipped: $1"; exit 77; }
command -v "$python" >/dev/null || skip "there is no $python"
[[ -e $here/../../models/pebble.gguf ]] || skip "models/pebble.gguf is not there"
if [[ -n $venv ]]; then
  [[ -x $venv/bin/python ]] || "$python" -m venv "$venv" || skip "no virtual environment can be made"
  "$venv/bin/pip" -q install -r "$here/requirements.txt" || skip "the clients cannot be installed"
  python=$venv/bin/python
fi
while IFS='=' read -r name _ version; do
  have=$("$python" -c "import $name; print($name.__version__)" 2>/dev/null) ||
    skip "$python has no $name (cmake -DFOREBAY_CLIENTS_INSTALL=ON installs it)"
  [[ $have == "$version" ]] || skip "$name is $have, the test is for $version"
done <"$here/requirements.txt"
source "$here/serve_for_tests.sh"
serve_for_tests "$forebay" --api-key secret
"$python" "$here/check_clients.py" "$URL"
