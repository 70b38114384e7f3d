#!/usr/bin/env python3
"""Writes the small GGUF and safetensors files that tests read back, with the writers everyone else uses.

    pip install gguf==0.19.0 safetensors==0.8.0 numpy
    python3 tools/make_container_fixtures.py

Overwrites tests/gguf/fixtures and tests/safetensors/fixtures. The tests know the values by heart: tensor n of a
file counts up from n * 100.
"""

import json
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

TESTS = Path(__file__).resolve().parent.parent / "tests"


def counting(n, shape, dtype):
    return (np.arange(np.prod(shape, dtype=int)) + 100 * n).reshape(shape).astype(dtype)


def write_gguf(path, **options):
    writer = gguf.GGUFWriter(path, "tiny", **options)
    writer.add_name("Tiny éà 水")
    writer.add_uint8("k.u8", 200)
    writer.add_int8("k.i8", -100)
    writer.add_uint16("k.u16", 60000)
    writer.add_int16("k.i16", -30000)
    writer.add_uint32("k.u32", 4000000000)
    writer.add_int32("k.i32", -2000000000)
    writer.add_uint64("k.u64", 2**64 - 1)
    writer.add_int64("k.i64", -(2**63))
    writer.add_float32("k.f32", 0.1)
    writer.add_float64("k.f64", 0.1)
    writer.add_bool("k.bool", True)
    writer.add_array("k.ints", [1, -2, 3])
    writer.add_array("k.floats", [0.5, -0.25])
    writer.add_array("k.bools", [True, False])
    writer.add_array("k.strings", ["a", "", "水"])
    writer.add_tensor("f32.weight", counting(0, (2, 3), np.float32))
    writer.add_tensor("f16.weight", counting(1, (5,), np.float16))
    writer.add_tensor("i32.weight", counting(2, (2, 1, 3), np.int32))
    blocks = counting(0, (2, 34), np.uint8)
    writer.add_tensor("q8_0.weight", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    directory = TESTS / "gguf" / "fixtures"
    directory.mkdir(exist_ok=True)
    write_gguf(directory / "whole.gguf")
    write_gguf(directory / "split.gguf", split_max_tensors=2, small_first_shard=True)

    directory = TESTS / "safetensors" / "fixtures"
    (directory / "sharded").mkdir(parents=True, exist_ok=True)
    tensors = {"f32": counting(0, (2, 3), np.float32), "f16": counting(1, (5,), np.float16),
               "f64": counting(2, (2, 2), np.float64), "i64": counting(3, (2,), np.int64),
               "i32": counting(4, (3,), np.int32), "i16": counting(5, (1, 3), np.int16),
               "i8": counting(0, (7,), np.int8), "u8": counting(1, (3,), np.uint8),
               "bool": np.array([True, False]), "scalar": np.float32(6), "none": np.zeros((0, 3), np.float32)}
    save_file({name: np.asarray(value) for name, value in tensors.items()}, directory / "every_type.safetensors",
              metadata={"format": "np", "author": "水"})
    files = {"model-00001-of-00002.safetensors": ["f32", "f16"], "model-00002-of-00002.safetensors": ["i32"]}
    for file, names in files.items():
        save_file({name: tensors[name] for name in names}, directory / "sharded" / file, metadata={"format": "pt"})
    weight_map = {name: file for file, names in files.items() for name in names}
    (directory / "sharded" / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 46}, "weight_map": weight_map}, indent=2) + "\n")


if __name__ == "__main__":
    main()
