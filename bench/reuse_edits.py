"""Tables of many forebay scr-test --json results, one per line on standard input. Standard library only."""
import json
import math
import sys
from statistics import mean, median

tests = [json.loads(line) for line in sys.stdin if line.strip()]
variants = ["keep", "keep + transport", "exact-state", "lossy"]


def rows(test, variant):
    """By position in the list of junctions: short spans of C round J differently."""
    return [row for row in test["rows"] if row["variant"] == variant]


def row_of(test, variant):
    return rows(test, variant)[0]


junctions = [int(j) for j in tests[0]["config"]["junctions"].split(",")]
middle = min(len(junctions) - 1, 1)
print(f"mean KLD over D, J = {junctions[middle]}")
print(f"{'edit':14} {'kind':22} {'B':>4} {'B_':>4} {'pad':>3} {'C':>5} {'keep':>9} {'transport':>9} {'exact':>9} {'lossy':>9}"
      f" {'no pads':>9} {'heads':>6} {'energy':>6} {'bound':>7} {'faster':>6}")
for t in tests:
    n = t["tokens"]
    kld = [rows(t, v)[middle]["mean_kld"] for v in variants]
    pads = row_of(t, "no pads")["mean_kld"] if n["pads"] else 0
    s = t["staleness"]
    print(f"{t['name']:14} {t['kind']:22} {n['b']:4} {n['b_new']:4} {n['pads']:3} {n['c']:5} "
          + " ".join(f"{k:9.6f}" for k in kld)
          + f" {pads:9.6f} {s['share_of_heads']:6.2f} {s['share_of_energy']:6.2f} {s['relative_bound']:7.4f}"
          + f" {rows(t, 'keep')[middle]['speedup']:6.1f}")
    assert row_of(t, "sanity")["max_kld"] == 0, t["name"]

print(f"\nall {len(tests)} edits")
print(f"{'variant':17} {'J':>3} {'mean KLD':>9} {'median':>9} {'worst':>9} {'p90':>9} {'max':>8} {'top-1':>8} {'PPL/fresh':>9}"
      f" {'faster':>7} {'repeats':>7}")
fresh_repeats = mean(row_of(t, "fresh")["repeated_4grams"] for t in tests)
print(f"{'fresh':17} {'-':>3} {0:9.6f} {0:9.6f} {0:9.6f} {0:9.6f} {0:8.4f} {100:6.2f} % {1:9.4f} {1:7.1f} {fresh_repeats:7.1f}")
for variant in variants:
    for i, j in enumerate(junctions):
        picked = [rows(t, variant)[i] for t in tests]
        klds = [r["mean_kld"] for r in picked]
        ppl = math.exp(mean(math.log(r["perplexity"] / row_of(t, "fresh")["perplexity"]) for t, r in zip(tests, picked)))
        print(f"{variant:17} {j:3} {mean(klds):9.6f} {median(klds):9.6f} {max(klds):9.6f} {mean(r['p90_kld'] for r in picked):9.6f}"
              f" {max(r['max_kld'] for r in picked):8.4f} {100 * mean(r['top1'] for r in picked):6.2f} % {ppl:9.4f}"
              f" {median(r['speedup'] for r in picked):7.1f} {mean(r['repeated_4grams'] for r in picked):7.1f}")

print(f"\nby kind, mean KLD at J = {junctions[middle]}")
print(f"{'kind':22} {'edits':>5} {'keep':>9} {'transport':>9} {'exact':>9} {'lossy':>9}")
for kind in sorted({t["kind"] for t in tests}):
    group = [t for t in tests if t["kind"] == kind]
    print(f"{kind:22} {len(group):5} " + " ".join(f"{mean(rows(t, v)[middle]['mean_kld'] for t in group):9.6f}" for v in variants))


def rank_correlation(x, y):
    def ranks(v):
        order = sorted(range(len(v)), key=lambda i: v[i])
        out = [0] * len(v)
        for r, i in enumerate(order):
            out[i] = r
        return out
    a, b = ranks(x), ranks(y)
    n = len(a)
    return 1 - 6 * sum((p - q) ** 2 for p, q in zip(a, b)) / (n * (n * n - 1))


keep = [rows(t, "keep")[middle]["mean_kld"] for t in tests]
print("\nrank correlation of the mean KLD of keep with:")
for name in ("share_of_heads", "share_of_energy", "relative_bound"):
    print(f"  {name:16} {rank_correlation([t['staleness'][name] for t in tests], keep):6.3f}")
print(f"  {'edited / C':16} {rank_correlation([(t['tokens']['b'] + t['tokens']['b_new']) / t['tokens']['c'] for t in tests], keep):6.3f}")
bytes_per_token = [t["staleness"]["log_bytes"] / t["tokens"]["c"] for t in tests]
print(f"kept for transport: {median(bytes_per_token):.0f} bytes per token")
