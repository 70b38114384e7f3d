#!/usr/bin/env python3
"""Writes src/tokenizer/jinja/unicode_tables.h: the character properties that Python's string methods look at.

    python3 tools/make_unicode_tables.py > src/tokenizer/jinja/unicode_tables.h

A set is the sorted list of code points where membership flips. A case map is a list of runs
{first, last, stride, delta}; code points whose mapping is longer than one stand in kLongCase.
"""

import sys
import unicodedata

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def edges(member):
    out, inside = [], False
    for c in ALL:
        if member(chr(c)) != inside:
            inside = not inside
            out.append(c)
    return out


def runs(mapping):
    out = []
    for c in ALL:
        mapped = mapping(chr(c))
        if len(mapped) != 1 or ord(mapped) == c:
            continue
        delta = ord(mapped) - c
        last = out[-1] if out else None
        gap = c - last[1] if last else 0
        if last and last[3] == delta and (gap == last[2] or (last[0] == last[1] and gap <= 2)):
            last[1], last[2] = c, gap
        else:
            out.append([c, c, 1, delta])
    return out


def wrap(items, width=108):
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            print(line)
            line = "   "
        line += " " + item + ","
    print(line)


def print_set(name, member, comment):
    print(f"\n// {comment}\ninline constexpr uint32_t {name}[] = {{")
    wrap(hex(c) for c in edges(member))
    print("};")


def print_runs(name, mapping, comment):
    print(f"\n// {comment}\ninline constexpr CaseRun {name}[] = {{")
    wrap("{0x%x, 0x%x, %d, %d}" % tuple(run) for run in runs(mapping))
    print("};")


def code_points(text):
    return "{" + ", ".join(hex(ord(c)) for c in text) + "}"


def main():
    category = unicodedata.category
    print(f"// Made by tools/make_unicode_tables.py from Unicode {unicodedata.unidata_version}. See there for the shapes.")
    print("// clang-format off\n#pragma once\n\n#include <cstdint>\n\nnamespace forebay::jinja {")
    print("\nstruct CaseRun {\n  uint32_t first, last, stride;\n  int32_t delta;\n};")
    print("\nstruct LongCase {\n  uint32_t code_point;\n  uint32_t upper[3], title[3];  // zero-padded\n};")
    print_set("kAlphabetic", str.isalpha, "str.isalpha: letters")
    print_set("kDecimal", str.isdecimal, "str.isdecimal")
    print_set("kOtherDigit", lambda s: s.isdigit() and not s.isdecimal(), "str.isdigit beyond the decimals")
    print_set("kOtherNumeric", lambda s: s.isnumeric() and not s.isdigit(), "str.isnumeric beyond the digits")
    # Unassigned code points count as printable: they may be letters or emoji newer than this table.
    print_set("kUnprintable", lambda s: not s.isprintable() and category(s) != "Cn", "escaped by repr")
    print_set("kLowerWithoutPair", lambda s: s.islower() and s.upper() == s, "lower case, no upper case")
    print_set("kUpperWithoutPair", lambda s: s.isupper() and s.lower() == s, "upper case, no lower case")
    print_set("kNotLower", lambda s: not s.islower() and s.upper() != s, "has an upper case, is not lower case")
    print_set("kNotUpper", lambda s: not s.isupper() and s.lower() != s, "has a lower case, is not upper case")
    print_runs("kToUpper", str.upper, "")
    print_runs("kToLower", str.lower, "")
    print("\n// Title case where it is not the upper case.\ninline constexpr CaseRun kToTitle[] = {")
    other = [c for c in ALL if len(chr(c).title()) == 1 and chr(c).title() != chr(c).upper()]
    wrap("{0x%x, 0x%x, 1, %d}" % (c, c, ord(chr(c).title()) - c) for c in other)
    print("};")
    print("\n// Only U+0130 has a long lower case; to_lower knows it.\ninline constexpr LongCase kLongCase[] = {")
    for c in ALL:
        upper, title = chr(c).upper(), chr(c).title()
        if len(upper) > 1 or len(title) > 1:
            print(f"    {{{hex(c)}, {code_points(upper)}, {code_points(title)}}},")
    print("};\n\n}  // namespace forebay::jinja")


if __name__ == "__main__":
    sys.exit(main())
