/// What each known value of tokenizer.ggml.pre means: the regular expressions that cut text before BPE.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "forebay/result.h"

namespace forebay {

struct PreTokenizerRules {
  std::string_view name;
  std::span<const std::string_view> aliases;
  /// Applied one after the other, each to the pieces of the one before. A match is a piece, and so is the
  /// text between two matches. Spelled as in tokenizer.json; to_pcre2_pattern() makes the classes exact.
  std::span<const std::string_view> patterns;
  bool nfc;           // the family's tokenizer.json normalises to NFC
  bool whole_pieces;  // a piece that is a token stays whole even where merges would not build it
};

/// By name or alias. Errors: kUnsupported, listing the known names.
Result<const PreTokenizerRules*> find_pre_tokenizer_rules(std::string_view name);

/// The first rules with exactly these patterns, or null.
const PreTokenizerRules* find_rules_by_patterns(std::span<const std::string> patterns);

/// GPT-2's regular expression, which HF's ByteLevel applies on its own.
extern const std::string_view kGpt2Pattern;
/// One number character: what HF calls Digits(individual_digits).
extern const std::string_view kSingleDigitPattern;

/// The same pattern for PCRE2 with UTF and UCP, with \s, \S, \p{L}, \p{M} and \p{N} written out so that they
/// mean Unicode's White_Space and the general categories of Unicode 16 whatever version PCRE2 knows.
std::string to_pcre2_pattern(std::string_view pattern);

}  // namespace forebay
