#!/usr/bin/env bash
# What does a saved state save? A cut of Flash-Next with random weights (forebay synth): reading a prompt against
# loading its state from a file, whole processes of `forebay run -n 0`, in turn, for some prompt lengths.
#   bench/session_reload.sh FOLDER [PAIRS]     FOREBAY, BLOCKS=4, WORDS="64 256" from the environment
# One line per length: medians and the ratio of pairs. With PAIRS 0, for long prompts: one reading, which also writes the
# file, and one loading. The model stays in FOLDER for the next time.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
forebay=${FOREBAY:-$here/../build/release/forebay}
folder=${1:?a folder on the disk in question} pairs=${2:-3} blocks=${BLOCKS:-4}
model=$folder/cut-$blocks-64.gguf session=$folder/reload.session
[[ -e $model ]] || "$forebay" synth --blocks "$blocks" --experts 64 --vocab 32768 --ngram-rows 20000 -q -o "$model" >/dev/null
trap 'rm -f "$session"' EXIT
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
for n in ${WORDS:-64 256}; do
  # Of the made-up vocabulary, about four tokens per word.
  prompt=$(python3 -c 'import sys; print(" ".join("a%d" % (i * 7919 % 997) for i in range(int(sys.argv[1]))))' "$n")
  run() { "$forebay" run -m "$model" --raw -p "$prompt" -n 0 -c $((8 * n)) --json -q "$@"; }
  times=()
  timed() {  # WAY [FLAGS]
    local start reused
    start=$(date +%s.%N)
    reused=$(run "${@:2}" | field reused_tokens)
    times+=("$1:$(date +%s.%N | python3 -c 'import sys; print(float(sys.stdin.read()) - float(sys.argv[1]))' "$start"):$reused")
  }
  if ((pairs == 0)); then
    timed read --save-session "$session"
    timed load --load-session "$session"
  else
    run --save-session "$session" >/dev/null
  fi
  tokens=$("$forebay" session show "$session" --json -q | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["ids"]))')
  for ((i = 0; i < pairs; ++i)); do
    timed read
    timed load --load-session "$session"
    timed load --load-session "$session"
    timed read
  done
  python3 - "$tokens" "$(stat -c %s "$session")" "${times[@]}" <<'PYTHON'
import statistics, sys
tokens, size = int(sys.argv[1]), int(sys.argv[2])
runs = [t.split(":") for t in sys.argv[3:]]
assert all(int(reused) == (tokens if way == "load" else 0) for way, _, reused in runs), runs
took = [(way, float(seconds)) for way, seconds, _ in runs]
of = {way: [s for w, s in took if w == way] for way in ("read", "load")}
pairs = [(took[i][1] + took[i + 3][1]) / (took[i + 1][1] + took[i + 2][1]) for i in range(0, len(took) - 3, 4)]
pairs = pairs or [took[0][1] / took[1][1]]
print(f"{tokens} tokens, {size / 2**20:.1f} MiB: read {statistics.median(of['read']):.2f} s, loaded {statistics.median(of['load']):.2f} s,"
      f" ratio {statistics.median(pairs):.1f} ({min(pairs):.1f} - {max(pairs):.1f})")
PYTHON
done
