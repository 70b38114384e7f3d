#!/usr/bin/env python3
"""Speed of forebay and of another engine on the same file, in turns: prompt and decode, ratio pair by pair.

    python3 -m venv peers && peers/bin/pip install xllamacpp==2026.10.11549 ik-llama-cpp-python==0.1.5 numpy
    peers/bin/python bench/peer_speed.py -m model.gguf --peer llama.cpp --prefill 512 --decode 32 --rounds 6
    peers/bin/python bench/peer_speed.py -m model.gguf --peer ik
    ... --cgroup /sys/fs/cgroup/memory/a --peer-cgroup /sys/fs/cgroup/memory/b --forebay-opt="--budget 10G"
                                                             each in a group of its own with the same memory limit

A round is one run of each, the order changing every round; a ratio above 1 says that forebay took less time. The peer
keeps its model loaded, reads its prompt in one batch, and repacks weights as it likes; forebay is started for each
round and measures what follows loading (forebay bench). Tokens are random, the same for both.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Llama:
    """llama.cpp through the C API in the xllamacpp wheel (tools/peers_llama.py)."""

    def __init__(self, path, n_ctx, threads):
        sys.path.insert(0, os.path.join(HERE, "..", "tools"))
        from peers_llama import LlamaCpp
        library = LlamaCpp()
        self.name, api = library.version(), library.api
        params = api.llama_model_default_params()
        model = api.llama_model_load_from_file(os.fsencode(path), params)
        if not model:
            raise SystemExit("llama.cpp refuses the file: " + "".join(library.lines)[-400:])
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = n_ctx, n_ctx, 512
        params.n_threads = params.n_threads_batch = threads
        self.api, self.library, self.context = api, library, api.llama_init_from_model(model, params)
        if not self.context:
            raise SystemExit("llama.cpp makes no context: " + "".join(library.lines)[-400:])

    def clear(self):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)

    def feed(self, ids, start):
        batch = self.api.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, start + i, 1, 0
            batch.logits[i] = i == len(ids) - 1
        status = self.api.llama_decode(self.context, batch)
        self.api.llama_get_logits_ith(self.context, len(ids) - 1)  # waits for the result
        self.api.llama_batch_free(batch)
        if status != 0:
            raise SystemExit(f"llama_decode returned {status}")


class Ik:
    """ik_llama.cpp through the ctypes layer of ik-llama-cpp-python."""

    def __init__(self, path, n_ctx, threads):
        import importlib.metadata
        from ik_llama_cpp._internals import IkModel, IkContext, make_batch_range
        self.name = "ik_llama.cpp (ik-llama-cpp-python " + importlib.metadata.version("ik-llama-cpp-python") + ")"
        self.model = IkModel(path)
        self.context = IkContext(self.model, n_ctx=n_ctx, n_threads=threads, flash_attn=True)
        self.make_batch = make_batch_range

    def clear(self):
        self.context.kv_cache_clear()

    def feed(self, ids, start):
        from ik_llama_cpp._internals import make_batch_single
        batch = self.make_batch(ids) if start == 0 else make_batch_single(ids[0], start)
        if self.context.decode(batch) != 0:
            raise SystemExit("decode failed")
        self.context.get_logits()


def worker(options):
    """Reads "prefill"/"decode" lines, answers seconds."""
    ids = tokens(options)
    engine = {"llama.cpp": Llama, "ik": Ik}[options.peer](options.model, len(ids) + 64, options.threads)
    print(json.dumps({"name": engine.name}), flush=True)
    for line in sys.stdin:
        engine.clear()
        if line.strip() == "prefill":
            start = time.perf_counter()
            engine.feed(ids[:options.prefill], 0)
        else:
            engine.feed(ids[:1], 0)
            start = time.perf_counter()
            for i in range(options.decode):
                engine.feed([ids[1 + i]], 1 + i)
        print(json.dumps(time.perf_counter() - start), flush=True)


def tokens(options):
    numbers = random.Random(1)
    return [numbers.randrange(options.vocabulary) for _ in range(max(options.prefill, options.decode + 1) + 1)]


def in_group(folder):
    def enter():
        if folder:
            with open(os.path.join(folder, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))
    return enter


def forebay(options):
    command = [options.forebay, "bench", "-m", options.model, "--prefill", str(options.prefill) if options.prefill else "",
               "--decode", str(options.decode), "--repeat", "1", "-t", str(options.threads), "--json", "-q",
               *options.forebay_opt.split()]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=in_group(options.cgroup))
    if done.returncode != 0:
        raise SystemExit("forebay bench: " + done.stderr)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["test"]: row["seconds"][0] for row in rows if "test" in row}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--peer", choices=["llama.cpp", "ik"], default="llama.cpp")
    parser.add_argument("--forebay", default=os.path.join(HERE, "..", "build", "release", "forebay"))
    parser.add_argument("--forebay-opt", default="", help="further flags of forebay bench")
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=10000, help="random tokens are below this")
    parser.add_argument("--cgroup", default="", help="a control group's folder, for forebay")
    parser.add_argument("--peer-cgroup", default="", help="and for the other: pages that one read belong to its group")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the peer says")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options)

    peer = subprocess.Popen([sys.executable, __file__, "--worker", *sys.argv[1:]], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=None if options.verbose else subprocess.DEVNULL, text=True,
                            preexec_fn=in_group(options.peer_cgroup))

    def answer():
        line = peer.stdout.readline()
        if not line:
            raise SystemExit("the peer stopped: -v shows why")
        return json.loads(line)

    def ask(what):
        peer.stdin.write(what + "\n")
        peer.stdin.flush()
        return answer()

    name = answer()["name"]
    tests = [test for test, n in (("prefill", options.prefill), ("decode", options.decode)) if n]
    for test in tests:
        ask(test)  # warm
    pairs = {test: [] for test in tests}
    for round in range(options.rounds):
        ours, theirs = {}, {}
        for who in ("fp" if round % 2 == 0 else "pf"):
            if who == "f":
                ours = forebay(options)
            else:
                theirs = {test: ask(test) for test in tests}
        for test in tests:
            pairs[test].append((ours[test], theirs[test]))
    peer.stdin.close()
    print(f"{os.path.basename(options.model)}: forebay against {name}, {options.threads} threads, {options.rounds} rounds")
    for test in tests:
        n = options.prefill if test == "prefill" else options.decode
        ratios = sorted(theirs / ours for ours, theirs in pairs[test])
        speeds = [n / statistics.median(pair[side] for pair in pairs[test]) for side in (0, 1)]
        print(f"  {test:<8}{n:>6} tokens  {speeds[0]:9.2f} against {speeds[1]:9.2f} tokens/s   ratio "
              f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


if __name__ == "__main__":
    main()
