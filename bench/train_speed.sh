#!/usr/bin/env bash
# Tokens per second of forebay train against the same model in plain PyTorch, in turns (A B B A, as often as asked):
#     bench/train_speed.sh build/release/forebay [rounds]
# Prints the medians of each turn and the median ratio.
set -euo pipefail
forebay=$1 rounds=${2:-2}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ours() {
  "$forebay" train pretrain --recipe recipes/throughput.toml --out "$work/$1" --stop-after 60 >/dev/null 2>&1
  python3 - "$work/$1/metrics.jsonl" <<'PY'
import json, statistics, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
print(f"{statistics.median(r['tokens_per_s'] for r in rows if r.get('step', 0) > 10):.0f}")
PY
}

ratios=()
for ((i = 0; i < rounds; ++i)); do
  a=$(ours "$i-a"); b=$(python3 bench/train_python.py); c=$(python3 bench/train_python.py); d=$(ours "$i-d")
  echo "forebay $a $d tokens/s, PyTorch $b $c tokens/s"
  ratios+=("$(python3 -c "print(f'{($a + $d) / ($b + $c):.3f}')")")
done
printf 'ratio forebay / PyTorch: %s\n' "$(printf '%s\n' "${ratios[@]}" | sort -n | sed -n "$(((rounds + 1) / 2))p")"
