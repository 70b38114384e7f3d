# Sourced: starts a server with the embedded model on a free port and sets URL; it ends with the script.
# shellcheck shell=bash
# serve_for_tests FOREBAY [options of serve...]
serve_for_tests() {
  local log
  log=$(mktemp)
  "$1" serve --port 0 --context 2048 "${@:2}" 2>"$log" &
  server_pid=$!
  trap 'kill "$server_pid" 2>/dev/null; wait "$server_pid" 2>/dev/null; rm -f "'"$log"'"' EXIT
  for ((i = 0; i < 300; ++i)); do
    URL=$(sed -n 's/.*on \(http:[^,]*\),.*/\1/p' "$log")
    [[ -z $URL ]] || { export URL; return 0; }
    kill -0 "$server_pid" 2>/dev/null || { cat "$log"; exit 1; }
    sleep 0.1
  done
  echo "the server did not start"
  exit 1
}
