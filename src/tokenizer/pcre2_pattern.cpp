// Makes the character classes of a pre-tokenizer pattern independent of the PCRE2 that runs it: PCRE2's \s
// also takes U+180E, which left White_Space in Unicode 6.3, and its general categories are those of the
// version it was built with (10.42: Unicode 14).
#include <fmt/format.h>

#include "tokenizer/pre_tokenizer_rules.h"

namespace forebay {
namespace {

constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// Letters, marks and numbers that Unicode 15, 15.1 and 16 added.
constexpr std::string_view kNewLetters =
    R"(\x{1C89}-\x{1C8A}\x{A7CB}-\x{A7CD}\x{A7DA}-\x{A7DC}\x{105C0}-\x{105F3}\x{10D4A}-\x{10D65})"
    R"(\x{10D6F}-\x{10D85}\x{10EC2}-\x{10EC4}\x{1123F}-\x{11240}\x{11380}-\x{11389}\x{1138B}\x{1138E})"
    R"(\x{11390}-\x{113B5}\x{113B7}\x{113D1}\x{113D3}\x{11BC0}-\x{11BE0}\x{11F02}\x{11F04}-\x{11F10})"
    R"(\x{11F12}-\x{11F33}\x{1342F}\x{13441}-\x{13446}\x{13460}-\x{143FA}\x{16100}-\x{1611D})"
    R"(\x{16D40}-\x{16D6C}\x{18CFF}\x{1B132}\x{1B155}\x{1DF25}-\x{1DF2A}\x{1E030}-\x{1E06D})"
    R"(\x{1E4D0}-\x{1E4EB}\x{1E5D0}-\x{1E5ED}\x{1E5F0}\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})";
constexpr std::string_view kNewMarks =
    R"(\x{897}\x{CF3}\x{ECE}\x{10D69}-\x{10D6D}\x{10EFC}-\x{10EFF}\x{11241}\x{113B8}-\x{113C0}\x{113C2})"
    R"(\x{113C5}\x{113C7}-\x{113CA}\x{113CC}-\x{113D0}\x{113D2}\x{113E1}-\x{113E2}\x{11F00}-\x{11F01})"
    R"(\x{11F03}\x{11F34}-\x{11F3A}\x{11F3E}-\x{11F42}\x{11F5A}\x{13440}\x{13447}-\x{13455})"
    R"(\x{1611E}-\x{1612F}\x{1E08F}\x{1E4EC}-\x{1E4EF}\x{1E5EE}-\x{1E5EF})";
constexpr std::string_view kNewNumbers =
    R"(\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11F50}-\x{11F59}\x{16130}-\x{16139})"
    R"(\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1D2C0}-\x{1D2D3}\x{1E4F0}-\x{1E4F9}\x{1E5F1}-\x{1E5FA})";

struct Class {
  std::string_view spelling;
  std::string_view base;  // what PCRE2 has for it
  std::string_view more;
  bool negated;  // cannot stand inside brackets
};

constexpr Class kClasses[] = {
    {R"(\s)", "", kWhiteSpace, false},
    {R"(\S)", "", kWhiteSpace, true},
    {R"(\p{L})", R"(\p{L})", kNewLetters, false},
    {R"(\p{M})", R"(\p{M})", kNewMarks, false},
    {R"(\p{N})", R"(\p{N})", kNewNumbers, false},
};

const Class* class_at(std::string_view pattern) {
  for (const Class& c : kClasses)
    if (pattern.starts_with(c.spelling)) return &c;
  return nullptr;
}

}  // namespace

std::string to_pcre2_pattern(std::string_view pattern) {
  std::string out;
  bool in_brackets = false;
  while (!pattern.empty()) {
    if (const Class* c = class_at(pattern)) {
      out += in_brackets ? fmt::format("{}{}", c->base, c->more)
                         : fmt::format("[{}{}{}]", c->negated ? "^" : "", c->base, c->more);
      pattern.remove_prefix(c->spelling.size());
      continue;
    }
    if (pattern[0] == '[') in_brackets = true;
    if (pattern[0] == ']') in_brackets = false;
    size_t n = pattern[0] == '\\' && pattern.size() > 1 ? 2 : 1;
    out += pattern.substr(0, n);
    pattern.remove_prefix(n);
  }
  return out;
}

}  // namespace forebay
