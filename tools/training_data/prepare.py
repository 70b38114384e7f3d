#!/usr/bin/env python3
"""Plain text to train a small model on: documentation and dictionaries from Debian packages, Python's standard library,
and generated conversations. Writes DIR/train/*.jsonl, DIR/validation/*.jsonl and DIR/sft/*.jsonl.

    tools/training_data/prepare.py DIR                      # everything, about 110 MB to download
    tools/training_data/prepare.py DIR --packages manpages fortunes-min --chats 2000
    tools/training_data/prepare.py DIR --megabytes 200      # at most so much text, a fair share of every package

Packages are fetched with apt-get download and unpacked with dpkg-deb; nothing is installed.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess

import chats
import text_of

PACKAGES = ["manpages", "manpages-dev", "manpages-ja", "manpages-ja-dev", "linux-doc-6.1", "python3.11-doc",
            "sqlite3-doc", "apache2-doc", "postgresql-doc-15", "perl-doc", "dict-gcide", "dict-wn", "dict-foldoc",
            "fortunes", "fortunes-min", "libpython3.11-stdlib", "libpython3.11-minimal", "git-doc", "bash-doc"]
SHORTEST = 200           # characters of a document that is kept
VALIDATION_SHARE = 200   # one document of so many


def fetch(package, cache):
    """The package's files below a directory, downloaded and unpacked once."""
    root = cache / package
    if not (root / ".done").exists():
        root.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=root, check=True, stdout=subprocess.DEVNULL)
        for deb in root.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", deb.name, "."], cwd=root, check=True)
            deb.unlink()
        (root / ".done").touch()
    return root


def documents_of(root, seen):
    """Cleaned texts of a package, each once, in the order of file names."""
    for path in sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink()):
        for text in text_of.texts(path):
            text = text_of.clean(text)
            digest = hashlib.sha256(text.encode()).digest()
            if len(text) < SHORTEST or digest in seen:
                continue
            seen.add(digest)
            yield text


def is_validation(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % VALIDATION_SHARE == 0


def write(directory, name, rows):
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / (name + ".jsonl"), "w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--packages", nargs="*", default=PACKAGES)
    parser.add_argument("--chats", type=int, default=60000, help="generated conversations")
    parser.add_argument("--megabytes", type=float, default=0, help="of package text at most; 0: all of it")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    seen, definitions = set(), []
    limit = args.megabytes * 1e6 / max(1, len(args.packages)) if args.megabytes else float("inf")
    for package in args.packages:
        train, validation, n_bytes = [], [], 0
        for text in documents_of(fetch(package, args.directory / "packages"), seen):
            if n_bytes >= limit:
                break
            n_bytes += len(text.encode())
            (validation if is_validation(text) else train).append({"text": text})
        write(args.directory / "train", package, train)
        write(args.directory / "validation", package, validation)
        if package in ("dict-wn", "dict-foldoc"):
            definitions += chats.definitions(train)
        print(f"{package}: {len(train)} documents, {n_bytes / 1e6:.1f} MB, {len(validation)} for validation", flush=True)

    rows = chats.generate(args.chats, args.seed, definitions)
    held_out = max(1, len(rows) // VALIDATION_SHARE)
    write(args.directory / "validation", "chats", rows[:held_out])
    write(args.directory / "train", "chats", rows[held_out:])
    write(args.directory / "sft", "chats", rows[held_out:])
    print(f"chats: {len(rows) - held_out}, {held_out} for validation")


if __name__ == "__main__":
    main()
