#!/usr/bin/env python3
"""forebay serve under load, and against forebay run.

  bench/serve_load.py FOREBAY [-m MODEL] [--clients 64] [--requests 20] [--soak 2000] [--pairs 8] [--tokens 800] [--threads N]

Load: every client asks its questions one after the other; a sixth of the streams is closed after the first bytes, a
twelfth of the connections before any. All other answers must be those of a server that does one at a time.
Soak: the same with few clients, watching memory. Overhead: decoding over HTTP against forebay run, in turn.
Prints one JSON line per part. Exit code 1: an answer was another, or a request failed.
"""
import argparse
import http.client
import json
import random
import re
import statistics
import subprocess
import sys
import threading
import time


class Server:
    def __init__(self, forebay, model, *options):
        command = [forebay, "serve", "--port", "0", "--context", "2048", *(["-m", model] if model else []), *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = None
        for line in self.process.stderr:
            if found := re.search(r"on http://[^:]*:(\d+),", line):
                self.port = int(found.group(1))
                break
        assert self.port, "the server did not start"
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def status(self):
        connection = self.connect()
        connection.request("GET", "/v1/status")
        return json.load(connection.getresponse())


def question(i):
    messages = [{"role": "user", "content": f"What is {10 + 7 * i} + {3 + i}?"}]
    if i % 3 == 0:
        messages.insert(0, {"role": "system", "content": "Answer briefly and with care."})
    if i % 4 == 1:
        filler = "The quick brown fox jumps over the lazy dog. " * (i % 37)
        messages.insert(0, {"role": "user", "content": "Read this first. " + filler})
    return {"messages": messages, "temperature": 0, "max_tokens": 48, "user": f"u{i % 5}",
            "reasoning_effort": "none" if i % 2 else "high"}


def ask(connection, body, leave=None):
    """The answer and the seconds to its first token; None when this client leaves."""
    began = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps({**body, "stream": True}))
    if leave == "before":
        connection.close()
        return None
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(response.read().decode())
    text, first = "", None
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if "error" in event:
            raise RuntimeError(event["error"]["message"])
        delta = event["choices"][0]["delta"]
        if piece := delta.get("reasoning_content", "") + (delta.get("content") or ""):
            first = first or time.monotonic() - began
            text += piece
        if leave == "within" and first:
            connection.close()
            return None
    return text, first or time.monotonic() - began


def run_clients(server, want, n_clients, n_requests):
    first, wrong, n_left = [], [], [0]
    lock = threading.Lock()

    def client(number):
        dice = random.Random(number)
        connection = server.connect()
        for _ in range(n_requests):
            i = dice.randrange(len(want))
            leave = dice.choice(["before"] + ["within"] * 2 + [None] * 9)
            try:
                answer = ask(connection, question(i), leave)
            except Exception as error:  # told, not hidden
                answer = (f"failed: {error!r}", 0)
                connection.close()
            with lock:
                if answer is None:
                    n_left[0] += 1
                else:
                    first.append(answer[1])
                    if answer[0] != want[i]:
                        wrong.append((i, answer[0], want[i]))

    threads = [threading.Thread(target=client, args=(c,)) for c in range(n_clients)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first.sort()
    for i, got, wanted in wrong[:3]:
        print(f"question {i}: {got!r} instead of {wanted!r}", file=sys.stderr)
    return {"requests": n_clients * n_requests, "answered": len(first), "left": n_left[0], "wrong": len(wrong),
            "seconds": round(time.monotonic() - began, 2),
            "first_token_p50": round(first[len(first) // 2], 3), "first_token_p99": round(first[len(first) * 99 // 100], 3)}


def load_and_soak(args):
    with Server(args.forebay, args.model, "--parallel", "1") as alone:
        connection = alone.connect()
        want = [ask(connection, question(i))[0] for i in range(60)]
    bad = 0
    with Server(args.forebay, args.model, "--parallel", "8", "--queue", "4096") as server:
        memory = lambda: server.status()["memory"]["process_bytes"]
        result = run_clients(server, want, args.clients, args.requests)
        print(json.dumps({"part": "load", "clients": args.clients, "parallel": 8, **result, "memory_bytes": memory()}), flush=True)
        bad += result["wrong"]
        # Four quarters: memory after each says whether it grows.
        for quarter in range(4):
            result = run_clients(server, want, 8, args.soak // 32)
            print(json.dumps({"part": "soak", "quarter": quarter + 1, **result, "memory_bytes": memory()}), flush=True)
            bad += result["wrong"]
    return bad


def overhead(args):
    """Tokens per second of decoding: forebay run by its own clock; over HTTP between the first and the last event of a
    stream, and for whole answers between sending and receiving."""
    prompt, n = "Once upon a time there was a river that", args.tokens
    model = ["-m", args.model] if args.model else []
    threads = ["-t", str(args.threads)] if args.threads else []

    def by_run():
        out = subprocess.run([args.forebay, "run", *model, *threads, "--raw", "--json", "-q", "-p", prompt, "-n", str(n),
                              "--temp", "0", "-c", "2048"], capture_output=True, text=True, check=True).stdout
        answer = json.loads(out)
        return answer["tokens"] / answer["decode_seconds"]

    with Server(args.forebay, args.model, "--parallel", "1", "--max-repeats", "0", *threads) as server:
        def by_http(stream):
            connection = server.connect()
            began = time.monotonic()
            connection.request("POST", "/v1/completions", json.dumps(
                {"prompt": prompt, "max_tokens": n, "temperature": 0, "stream": stream, "stream_options": None}))
            response = connection.getresponse()
            if not stream:
                return json.load(response)["usage"]["completion_tokens"] / (time.monotonic() - began)
            first, n_events = None, 0
            while data := response.read1(65536):
                first = first or time.monotonic()
                n_events += data.count(b"data: {")
            return (n - 1) / (time.monotonic() - first)

        ways = {"stream": lambda: by_http(True), "whole": lambda: by_http(False), "run_again": by_run}
        by_run(), by_http(True), by_http(False)
        for name, way in ways.items():
            pairs = []
            for pair in range(args.pairs):
                if pair % 2 == 0:
                    a = by_run()
                    pairs.append((a, way()))
                else:
                    b = way()
                    pairs.append((by_run(), b))
            ratios = sorted(b / a for a, b in pairs)
            print(json.dumps({"part": "overhead", "way": name, "pairs": args.pairs, "tokens": n,
                              "run_tok_s": round(statistics.median(a for a, _ in pairs), 1),
                              "tok_s": round(statistics.median(b for _, b in pairs), 1),
                              "ratio_median": round(statistics.median(ratios), 4),
                              "ratio_min": round(ratios[0], 4), "ratio_max": round(ratios[-1], 4)}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("forebay")
    parser.add_argument("-m", "--model")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--soak", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=800)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    bad = load_and_soak(args) if args.clients else 0
    if args.pairs:
        overhead(args)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
