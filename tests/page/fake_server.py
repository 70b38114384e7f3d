"""The page's files with the headers that the server sends, and an API that says what a test wants to see.

    python3 tests/page/fake_server.py [PORT]
"""
import http.server
import json
import pathlib
import random
import sys
import threading
import time

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
          "form-action 'none'; frame-ancestors 'none'")

ANSWER = """## Sorting

A **stable** sort keeps *equal* elements in order, see [the manual](https://example.org/sort_(C++)) or `std::stable_sort`.

1. Choose a key.
2. Sort:
   - small inputs by insertion,
   - others by merging.

| n | comparisons |
|---|---|
| 10 | 34 |
| 1,000 | 9,966 |

```cpp
std::stable_sort(v.begin(), v.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
```

> Premature optimisation is the root of all evil.
"""

HOSTILE = """<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">
[click](javascript:window.hacked=3) [data](data:text/html,<script>window.hacked=4</script>) [ok](https://example.org/"onmouseover="window.hacked=5)
![pixel](https://example.org/track.png) <https://example.org/<script>>
```"><script>window.hacked = 6</script>
</code></pre><svg onload="window.hacked = 7">
```
| <b>a</b> | [x](vbscript:window.hacked) |
|---|---|
| `<iframe src=javascript:window.hacked=8>` | \\<i\\> |
""" + "*" * 3000 + "_a" * 3000 + "[" * 3000 + "> " * 200 + "\n" + "- " * 200 + "x\n" + "`" * 999 + "\n"

SEEN = []  # bodies of requests, for the test
STUCK = []  # not empty: the status says that a pass hangs
started = time.time()


def status():
    t = time.time() - started
    rnd = random.Random(int(t))
    return {
        "model": {"name": "qwen4exp-80b", "architecture": "qwen4exp", "file_bytes": 45 << 30, "context": 65536, "chunk": 2048, "threads": 8, "experts": "streamed"},
        "plan": {"text": "memory: 12.0 GiB budget\n  trunk 3.1 GiB, state 0.9 GiB, buffers 0.4 GiB\n  experts 7.2 GiB of 41.2 GiB, shelf 0.4 GiB\nexpected: 6.1 tok/s, 83.0 % hits", "tokens_per_second": 6.1, "hit_rate": 0.83},
        "cache": {"files": 12, "bytes": 2 << 30, "saved": 31, "pruned": 4, "discarded": 0, "not_saved": 0},
        "queue": 2,
        "slots": [{"phase": "decode", "tokens": 5120, "prompt_tokens": 5000, "prompt_done": 5000, "generated": 120, "reuse": "extends the live state"},
                  {"phase": "prompt", "tokens": 2048, "prompt_tokens": 9200, "prompt_done": 2048, "generated": 0, "reuse": "parts from the live state at 811 of 4,000 tokens: restored the snapshot at 768"},
                  {"phase": "idle", "tokens": 812, "prompt_tokens": 700, "prompt_done": 700, "generated": 112, "reuse": "new session"}],
        "answers": {"submitted": 41, "finished": 37, "cancelled": 1, "failed": 0},
        "tokens": {"prompt": 120000, "reused": 96000, "loaded": 8000, "prefilled": 24000 + int(40 * t), "generated": 9000 + int(6 * t) + rnd.randrange(3)},
        "windows": {"count": 7000, "rows": 33000, "now_seconds": 12.5 if STUCK else 0.1, "now": "a pass"},
        "seconds": {"prompt": 60 + 0.1 * t, "decode": 1500 + t},
        "first_token_seconds": {"p50": 0.41, "p99": 3.2},
        "experts": {"hits": 900000, "misses": 170000, "prefetched": 40000, "prefetch_used": 21000, "hit_rate": 0.825, "evictions": 150000,
                    "bytes_read": int(3.1e11 + 4e8 * t), "wait_seconds": 210.5, "busy_seconds": 400, "resident_bytes": int(7.1 * 2**30), "budget_bytes": int(7.2 * 2**30)},
        "memory": {"process_bytes": int(11.7 * 2**30), "reserved_bytes": int(11.2 * 2**30)},
        "drafts": {"offered": 1000, "accepted": 640},
    }


def deltas_of(question):
    """What the model says: (delta, pause)."""
    if "tool" in question:
        yield {"reasoning_content": "I need the weather."}
        yield {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}]}
        for piece in ('{"city": "Par', 'is", "days": 3}'):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        return
    if "hostile" in question:
        yield {"reasoning_content": "<b>thought</b>"}
        text = HOSTILE
    elif "slow" in question:
        text = "word " * 400
    else:
        yield {"reasoning_content": "Stable means that equal elements keep their order. A table and some code will help."}
        text = ANSWER
    for i in range(0, len(text), 40):
        yield {"content": text[i:i + 40]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, code, kind, body):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        name = "index.html" if self.path == "/" else self.path.removeprefix("/page/")
        if self.path == "/v1/status":
            return self.send(200, "application/json", json.dumps(status()).encode())
        if self.path == "/v1/models":
            return self.send(200, "application/json", json.dumps({"data": [{"id": "qwen4exp-80b"}]}).encode())
        file = WEB / name
        if "/" in name or not file.is_file():
            return self.send(404, "text/plain", b"no such file")
        self.send(200, TYPES[file.suffix] + "; charset=utf-8", file.read_bytes())

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        SEEN.append(body)
        question = str(body["messages"][-1]["content"])
        if "fail" in question:
            return self.send(400, "application/json", json.dumps({"error": {"message": "temperature: <b>9</b>, expected 0 to 2"}}).encode())
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for delta in deltas_of(question):
                self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
                time.sleep(0.05 if "slow" in question else 0.002)
            self.event({"choices": [], "usage": {"prompt_tokens": 321, "completion_tokens": 87, "prompt_tokens_details": {"cached_tokens": 300}}})
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            SEEN.append("gone")
        self.close_connection = True

    def event(self, data):
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()


def serve(port=0):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    server = serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8090)
    print("http://127.0.0.1:%d/" % server.server_port)
    threading.Event().wait()
