#!/usr/bin/env python3
"""The tables and the figure of docs/slow-pipe.md, from runs of `forebay train grpo`.

    bench/slow_pipe.py DIR dense prf frlr sr4 rn4 [--png FILE]      DIR/ARM/metrics.jsonl of each arm, the control first

Rewards and gaps are means over the first and the last third (40 steps of 120) and sixth (20) of the shortest arm. The second
table has each arm against the control with 95 % intervals, and the smallest difference that would be found in four of five tries
(2.8 standard errors): of rewards step by step, since all arms draw the same problems; of validation as of independent samples;
and the slope of the gap over the last two thirds. Standard errors over steps are Newey-West's. One seed an arm: what another
seed would change is in none of them.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile


def record(path):
    """Steps by number; after a resume the later row counts."""
    rows = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if "step" in row:
            rows.setdefault(row["step"], {}).update(row)
    return rows


def mean(rows, key, first, last):
    return statistics.mean(rows[s][key] for s in rows if first <= s <= last)


def table(arms):
    n = min(max(rows) for rows in arms.values())
    third, sixth = n // 3, n // 6
    print(f"| arm | bits a token and boundary, forward / backward | GB in all | reward, steps 1-{third} | {n - third + 1}-{n} "
          f"| validation, % | gap, 1-{sixth} | {n - sixth + 1}-{n} | KL to the start, dense view | KL through the codec / dense KL "
          f"| seconds a step |")
    print("|" + "---|" * 11)
    for name, rows in arms.items():
        steps = [s for s in rows if 0 < s <= n]
        last = rows[n]
        inflation = [rows[s]["inflation"] for s in steps if rows[s].get("inflation") is not None]
        sent = sum(rows[s]["wire_bytes_fwd"] + rows[s]["wire_bytes_bwd"] for s in steps)
        validated = [rows[s]["val_accuracy"] for s in sorted(rows) if "val_accuracy" in rows[s]]
        bits = [max(rows[s][key] for s in steps) for key in ("wire_bits_fwd", "wire_bits_bwd")]  # 0 in a step that taught nothing
        print(f"| {name} | {bits[0]:,.0f} / {bits[1]:,.0f} | {sent / 1e9:.2f} "
              f"| {mean(rows, 'reward', 1, third):.3f} | {mean(rows, 'reward', n - third + 1, n):.3f} "
              f"| {100 * validated[0]:.1f} -> {100 * validated[-1]:.1f} "
              f"| {mean(rows, 'gap', 1, sixth):.3g} | {mean(rows, 'gap', n - sixth + 1, n):.3g} | {last['kl_dense']:.4f} "
              f"| {min(inflation):.2f} to {max(inflation):.3g} "
              f"| {statistics.median(rows[s]['step_s'] for s in steps):.2f} |")
    every = [row for rows in arms.values() for row in rows.values()]
    for key in ("ratio_max_dev", "engine_max_diff", "gap_engine"):
        print(f"largest |{key}|: {max(abs(row[key]) for row in every if row.get(key) is not None):.2g}")


def newey_west(residuals):
    """Variance of the sum, Bartlett weights over floor(4 (n/100)^(2/9)) lags."""
    n = len(residuals)
    lags = int(4 * (n / 100) ** (2 / 9))
    total = sum(r * r for r in residuals)
    for lag in range(1, lags + 1):
        total += 2 * (1 - lag / (lags + 1)) * sum(residuals[i] * residuals[i - lag] for i in range(lag, n))
    return max(total, 0)


def mean_and_error(values):
    middle = statistics.mean(values)
    return middle, math.sqrt(newey_west([v - middle for v in values])) / len(values)


def slope_and_error(values):
    n = len(values)
    x = [i - (n - 1) / 2 for i in range(n)]
    sum_xx = sum(a * a for a in x)
    middle = statistics.mean(values)
    slope = sum(a * v for a, v in zip(x, values)) / sum_xx
    scores = [a * (v - middle - slope * a) for a, v in zip(x, values)]
    return slope, math.sqrt(newey_west(scores)) / sum_xx


def differences(arms):
    n = min(max(rows) for rows in arms.values())
    window, tail = range(n - n // 3 + 1, n + 1), range(n // 3 + 1, n + 1)
    control = next(iter(arms))
    validated = {name: [rows[s] for s in sorted(rows) if "val_accuracy" in rows[s]] for name, rows in arms.items()}
    print(f"\n| arm | reward, steps {window[0]}-{n}, minus {control} | found if at least | validation minus {control}, points "
          f"| found if at least | slope of the gap, steps {tail[0]}-{n}, nats a step | found if at least |")
    print("|" + "---|" * 7)
    for name, rows in arms.items():
        slope, slope_error = slope_and_error([rows[s]["gap"] for s in tail])
        cells = ["", "", "", ""]
        if name != control:
            d, error = mean_and_error([rows[s]["reward"] - arms[control][s]["reward"] for s in window])
            a, b = validated[name][-1], validated[control][-1]
            points = 100 * (a["val_accuracy"] - b["val_accuracy"])
            spread = 100 * math.sqrt(sum(v["val_accuracy"] * (1 - v["val_accuracy"]) / v["val_items"] for v in (a, b)))
            cells = [f"{d:+.3f} [{d - 1.96 * error:+.3f}, {d + 1.96 * error:+.3f}]", f"{2.8 * error:.3f}",
                     f"{points:+.1f} [{points - 1.96 * spread:+.1f}, {points + 1.96 * spread:+.1f}]", f"{2.8 * spread:.1f}"]
        print(f"| {name} | {' | '.join(cells)} | {slope:+.2g} [{slope - 1.96 * slope_error:+.2g}, {slope + 1.96 * slope_error:+.2g}] "
              f"| {2.8 * slope_error:.2g} |")


def figure(arms, png):
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in arms.items():
            steps = sorted(s for s in rows if s > 0)
            with open(f"{folder}/{name}.steps", "w") as out:
                for i, s in enumerate(steps):
                    window = [rows[t]["reward"] for t in steps[max(0, i - 19):i + 1]]
                    print(s, statistics.mean(window) if i >= 19 else "NaN", abs(rows[s]["gap"]), file=out)
            with open(f"{folder}/{name}.probes", "w") as out:
                for s in steps:
                    if rows[s].get("kl_dense") is not None:
                        print(s, rows[s]["kl_dense"], rows[s].get("inflation", "NaN"), file=out)

        def plot(ending, column, style):
            return f"plot for [n in '{' '.join(arms)}'] '{folder}/'.n.'.{ending}' using 1:{column} with {style} lw 2 title n"

        script = [
            "set terminal pngcairo size 1000,640 font ',11'", f"set output '{png}'", "set multiplot layout 2,2",
            "set key top left", "set xlabel 'step'", "set ylabel 'reward, mean of 20 steps'",
            plot("steps", 2, "lines"), "set key off", "set logscale y", "set format y '10^{%L}'",
            "set ylabel 'gap, nats (sampler - trained view)'", plot("steps", 3, "lines"),
            "set ylabel 'KL to the start, dense view, nats'", plot("probes", 2, "linespoints"),
            "set ylabel 'inflation: KL through the codec / dense KL'", plot("probes", 3, "linespoints")]
        subprocess.run(["gnuplot"], input="\n".join(script), text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("arms", nargs="+")
    parser.add_argument("--png", type=pathlib.Path)
    options = parser.parse_args()
    arms = {name: record(options.directory / name / "metrics.jsonl") for name in options.arms}
    table(arms)
    differences(arms)
    if options.png:
        figure(arms, options.png)


if __name__ == "__main__":
    main()
