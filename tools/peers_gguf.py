"""GGUF files for tools/peers.py: a copy that other engines compute exactly, and the file's tokenizer as HF's.

Uses the `gguf` package on purpose: its reader and decoders share no code with what they are compared to.
"""
import gguf
import numpy as np
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

CONTROL, USER_DEFINED = 3, 4  # tokenizer.ggml.token_type

def value(reader, key, default=None):
    field = reader.fields.get(key)
    return default if field is None else field.contents()


def tensor_types(path):
    """How many tensors of each type, as text: "Q4_1 210, F32 61"."""
    counts = {}
    for tensor in gguf.GGUFReader(path).tensors:
        counts[tensor.tensor_type.name] = counts.get(tensor.tensor_type.name, 0) + 1
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda item: -item[1]))


def unsaid(path):
    """Metadata that llama.cpp must hear when a file has no vocabulary and does not say so."""
    reader = gguf.GGUFReader(path)
    if "tokenizer.ggml.model" in reader.fields:
        return {}
    rows = next(int(t.shape[1]) for t in reader.tensors if t.name == "token_embd.weight")
    return {"tokenizer.ggml.model": "none", f"{value(reader, 'general.architecture')}.vocab_size": rows}


def f32_copy(path, out):
    """Writes `path` with every tensor as f32: the same function without rounded activations."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(out, value(reader, "general.architecture"))
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type", "general.quantization_version"):
            continue
        writer.add_key_value(key, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        shape = tuple(int(n) for n in reversed(tensor.shape))
        data = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, np.ascontiguousarray(data, np.float32).reshape(shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def hf_tokenizer(path):
    """HF `tokenizers` over the vocabulary and merges of `path`, with the pre-tokenizer that its name stands for."""
    reader = gguf.GGUFReader(path)
    tokens, merges = value(reader, "tokenizer.ggml.tokens"), value(reader, "tokenizer.ggml.merges")
    kinds = value(reader, "tokenizer.ggml.token_type")
    tokenizer = Tokenizer(models.BPE(vocab={token: id for id, token in enumerate(tokens)},
                                     merges=[tuple(merge.split(" ")) for merge in merges]))
    pre = value(reader, "tokenizer.ggml.pre")
    if pre != "smollm":
        raise ValueError(f"tokenizer.ggml.pre: '{pre}', only smollm is known here")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t, kind in zip(tokens, kinds) if kind == CONTROL])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t, kind in zip(tokens, kinds) if kind == USER_DEFINED])
    return tokenizer


def special_tokens(path):
    reader = gguf.GGUFReader(path)
    return [token for token, kind in zip(value(reader, "tokenizer.ggml.tokens"), value(reader, "tokenizer.ggml.token_type"))
            if kind in (CONTROL, USER_DEFINED)]
