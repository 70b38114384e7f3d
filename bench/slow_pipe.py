#!/usr/bin/env python3
"""The table and the figure of docs/slow-pipe.md, from runs of `forebay train grpo`.

    bench/slow_pipe.py DIR dense prf frlr sr4 rn4 [--png FILE]      DIR/ARM/metrics.jsonl of each arm

Rewards and gaps are means over the first and the last third (40 steps of 120) and sixth (20) of the shortest arm.
"""
import argparse
import json
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
        print(f"| {name} | {last['wire_bits_fwd']:,.0f} / {last['wire_bits_bwd']:,.0f} | {sent / 1e9:.2f} "
              f"| {mean(rows, 'reward', 1, third):.3f} | {mean(rows, 'reward', n - third + 1, n):.3f} "
              f"| {100 * validated[0]:.1f} -> {100 * validated[-1]:.1f} "
              f"| {mean(rows, 'gap', 1, sixth):.3g} | {mean(rows, 'gap', n - sixth + 1, n):.3g} | {last['kl_dense']:.4f} "
              f"| {min(inflation):.2f} to {max(inflation):.3g} "
              f"| {statistics.median(rows[s]['step_s'] for s in steps):.2f} |")
    every = [row for rows in arms.values() for row in rows.values()]
    for key in ("ratio_max_dev", "engine_max_diff", "gap_engine"):
        print(f"largest |{key}|: {max(abs(row[key]) for row in every if row.get(key) is not None):.2g}")


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
            "set key top left", "set xlabel 'step'", "set ylabel 'reward, mean of 20 steps'", "set yrange [0.3:0.65]",
            plot("steps", 2, "lines"), "unset yrange", "set key off", "set logscale y", "set format y '10^{%L}'",
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
    if options.png:
        figure(arms, options.png)


if __name__ == "__main__":
    main()
