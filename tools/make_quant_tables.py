#!/usr/bin/env python3
"""Writes src/quant/iq_tables.cpp: the IQ codebooks as packed constants.

Usage: tools/make_quant_tables.py GRID_DIR > src/quant/iq_tables.cpp

GRID_DIR holds iq2xxs_grid.json, iq2xs_grid.json, iq2s_grid.json, iq3xxs_grid.json, iq3s_grid.json and
iq1s_grid.json, each {"values": [[row of 8 or 4 integers], ...], "sha256_of_flat_bytes": ...}. A row becomes a
16-bit number: element j's position among the codebook's magnitudes, in bits j * digit_bits upwards.
"""
import hashlib
import json
import pathlib
import sys

# C++ name, file, row type, bits per element, the numbers an element can be
GRIDS = [
    ("kIq2xxsGrid", "iq2xxs", "uint64_t", 2, [8, 25, 43]),
    ("kIq2xsGrid", "iq2xs", "uint64_t", 2, [8, 25, 43]),
    ("kIq2sGrid", "iq2s", "uint64_t", 2, [8, 25, 43]),
    ("kIq3xxsGrid", "iq3xxs", "uint32_t", 3, [4, 12, 20, 28, 36, 44, 52, 62]),
    ("kIq3sGrid", "iq3s", "uint32_t", 3, [1, 3, 5, 7, 9, 11, 13, 15]),
    ("kIq1Grid", "iq1s", "uint64_t", 2, [-1, 0, 1]),
]
PER_LINE = 14

HEAD = """\
// Written by tools/make_quant_tables.py. Rows are packed, a few bits per element, and unpacked by the
// compiler.
#include "quant/iq_tables.h"

namespace forebay {
namespace {

/// Element j of a row is numbers[the j-th digit of its packed form].
template <typename Row, size_t kRows, size_t kNumbers>
constexpr Grid<Row, kRows> unpack(const uint16_t (&packed)[kRows], int digit_bits,
                                  const int8_t (&numbers)[kNumbers]) {
  Grid<Row, kRows> grid{};
  for (size_t r = 0; r < kRows; ++r)
    for (size_t j = 0; j < sizeof(Row); ++j) {
      const int digit = packed[r] >> digit_bits * static_cast<int>(j) & ((1 << digit_bits) - 1);
      grid.rows[r] |= static_cast<Row>(static_cast<uint8_t>(numbers[digit])) << 8 * j;
    }
  return grid;
}

// clang-format off
"""


def read_rows(folder, name):
    grid = json.loads((folder / f"{name}_grid.json").read_text())
    flat = bytes(value & 0xFF for row in grid["values"] for value in row)
    if hashlib.sha256(flat).hexdigest() != grid["sha256_of_flat_bytes"]:
        sys.exit(f"{name}_grid.json: values do not match their SHA-256")
    return grid["values"]


def pack(row, digit_bits, numbers):
    return sum(numbers.index(value) << digit_bits * j for j, value in enumerate(row))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    out = [HEAD]
    unpacked = []
    for name, file, row_type, digit_bits, numbers in GRIDS:
        codes = [f"0x{pack(row, digit_bits, numbers):04x}," for row in read_rows(folder, file)]
        out.append(f"constexpr int8_t {name}Numbers[] = {{{', '.join(map(str, numbers))}}};\n")
        out.append(f"constexpr uint16_t {name}Packed[{len(codes)}] = {{\n")
        for begin in range(0, len(codes), PER_LINE):
            out.append("  " + " ".join(codes[begin : begin + PER_LINE]) + "\n")
        out.append("};\n\n")
        unpacked.append((name, row_type, len(codes), digit_bits))
    out.append("// clang-format on\n\n}  // namespace\n\n")
    for name, row_type, n_rows, digit_bits in unpacked:
        call = f"unpack<{row_type}>({name}Packed, {digit_bits}, {name}Numbers)"
        out.append(f"constexpr Grid<{row_type}, {n_rows}> {name} = {call};\n")
    out.append("\n}  // namespace forebay\n")
    sys.stdout.write("".join(out))


if __name__ == "__main__":
    main()
