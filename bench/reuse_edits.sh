#!/usr/bin/env bash
# What does reuse after an edit in the middle cost, and what does transport buy? All edits of bench/reuse_edits.
#   bench/reuse_edits.sh [MODEL]      JUNCTIONS=0,8,16 and GENERATE=256 from the environment
# One line per edit: its spans in tokens, mean KLD from the fresh run of every variant at J = 8; then what each variant
# costs over all edits, by kind and by J.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
forebay=${FOREBAY:-$here/../build/release/forebay}
model=${1:-$here/../models/pebble.gguf}
for chat in "$here"/reuse_edits/*.json; do
  n=$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["edits"]))' "$chat")
  for ((edit = 0; edit < n; ++edit)); do
    "$forebay" scr-test -m "$model" --conversation "$chat" --edit "$edit" -J "${JUNCTIONS:-0,8,16}" \
      --generate "${GENERATE:-256}" --json -q
    echo
  done
done | python3 "$here/reuse_edits.py"
