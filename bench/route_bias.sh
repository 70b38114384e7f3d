#!/usr/bin/env bash
# What does cache-aware routing save, and what does it cost? Misses and KLD against the bias, token by token.
#   bench/route_bias.sh MODEL BUDGET TOKENS TEXT...      for example: models/pebble.gguf 39.5MiB 1500 chat.txt ops.txt
# One line per text and bias: bias, misses and bytes per token, mean and 99th percentile KLD, tokens whose likeliest
# successor stayed the same, and how many changed in a digit.
set -euo pipefail
forebay=$(dirname "${BASH_SOURCE[0]}")/../build/release/forebay
model=$1 budget=$2 tokens=$3
shift 3
printf '%-10s %6s %9s %9s %9s %9s %8s %7s\n' text bias misses/t KiB/t 'mean KLD' 'p99 KLD' top-1 digits
for text in "$@"; do
  for bias in ${BIASES:-0 0.25 0.5 1 2 4}; do
    "$forebay" kld --step -m "$model" --ref "$model" --text "$text" -n "$tokens" --json --flips 1000000 -q \
      --cand-opt "--budget $budget --chunk 16 --prefetch off --route-bias $bias" |
      python3 -c '
import json, sys
r = json.load(sys.stdin)
e, n = r["experts"], r["tokens"]
has_digit = lambda s: any(c.isdigit() for c in s)
digits = sum(has_digit(f["reference"]) or has_digit(f["candidate"]) for f in r["flips"])
name, bias = sys.argv[1].rsplit("/", 1)[-1].removesuffix(".txt"), float(sys.argv[2])
misses, kib, top1 = e["misses"] / n, e["bytes_read"] / n / 1024, 100 * r["top1"]
mean, p99 = r["mean_kld"], r["p99_kld"]
print(f"{name:10} {bias:6g} {misses:9.2f} {kib:9.1f} {mean:9.5f} {p99:9.4f} {top1:7.2f}% {digits:7d}")' "$text" "$bias"
  done
done
