#!/bin/sh
# What a trainer looks like from outside: a resolved recipe on --dry-run, else metrics.jsonl, line by line.
steps=30 gap=1 slope=0 reward=0.7 codec='"dense"' delay=0 fail_at=0 nan_at=0 kl=0.1 out=. dry=no resume=no
while [ $# -gt 0 ]; do
  case $1 in
    --set)
      shift
      value=${1#*=}
      case ${1%%=*} in
        fake.steps) steps=$value ;; fake.gap) gap=$value ;; fake.slope) slope=$value ;; fake.kl) kl=$value ;;
        fake.reward) reward=$value ;; wire.codec) codec="\"$value\"" ;; fake.delay) delay=$value ;;
        fake.fail_at) fail_at=$value ;; fake.nan_at) nan_at=$value ;;
        *) echo "nothing asks for ${1%%=*}" >&2; exit 1 ;;
      esac ;;
    --out) shift; out=$1 ;;
    --recipe) shift ;;
    --dry-run) dry=yes ;;
    --resume) resume=yes ;;
    *) echo "unknown option $1" >&2; exit 2 ;;
  esac
  shift
done
if [ $dry = yes ]; then
  printf 'fake.delay = %s\nfake.fail_at = %s\nfake.gap = %s\nfake.kl = %s\nfake.nan_at = %s\nfake.reward = %s\n' \
    "$delay" "$fail_at" "$gap" "$kl" "$nan_at" "$reward"
  printf 'fake.slope = %s\nfake.steps = %s\nwire.codec = %s\n' "$slope" "$steps" "$codec"
  [ "$codec" = '"dense"' ] || echo 'wire.k = 16'
  exit 0
fi
first=1
[ $resume = no ] || first=$(($(wc -l <"$out/metrics.jsonl") + 1))
echo "from $first"
step=$first
while [ "$step" -le "$steps" ]; do
  [ "$step" != "$fail_at" ] || [ $resume = yes ] || { echo "cuda: out of memory" >&2; exit 7; }
  loss=0.5
  [ "$step" != "$nan_at" ] || loss=null
  last=$step
  [ "$delay" != 0 ] || last=$steps
  [ "$fail_at" = 0 ] || last=$step
  [ "$nan_at" = 0 ] || last=$step
  awk -v first="$step" -v last="$last" -v gap="$gap" -v slope="$slope" -v reward="$reward" -v loss="$loss" -v kl="$kl" 'BEGIN {
    for (s = first; s <= last; ++s)
      printf "{\"step\":%d,\"loss\":%s,\"reward\":%s,\"gap\":%.9g,\"grad_norm\":1,\"kl_dense\":%s,\"kl_view\":%.9g,\"val_accuracy\":%s,\"wire_bits_fwd\":512,\"wire_bits_bwd\":512,\"ratio_max_dev\":0,\"step_s\":0.1}\n",
        s, loss, reward, gap + slope * s, kl, 5 * kl, reward }' >>"$out/metrics.jsonl"
  step=$((last + 1))
  [ "$delay" = 0 ] || sleep "$delay"
done
