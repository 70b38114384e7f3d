#include "tokenizer/pre_tokenizer_rules.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace forebay {

constexpr std::string_view kGpt2Regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view kGpt2Pattern = kGpt2Regex;

constexpr std::string_view kSingleDigitRegex = R"(\p{N})";
const std::string_view kSingleDigitPattern = kSingleDigitRegex;

namespace {

constexpr std::string_view kQwen2[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kQwen2Aliases[] = {"deepseek-r1-qwen", "kormo", "f2llmv2", "megrez"};

// Combining marks belong to words: scripts that write vowels as marks would fall apart without.
constexpr std::string_view kQwen35[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::string_view kLlama3[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::string_view kLlama3Aliases[] = {"llama3", "llama-v3"};

constexpr std::string_view kGpt2[] = {kGpt2Regex};
constexpr std::string_view kGpt2Aliases[] = {"gpt2"};

constexpr std::string_view kSmollm[] = {kSingleDigitRegex, kGpt2Regex};
constexpr std::string_view kSmollmAliases[] = {"starcoder"};

constexpr PreTokenizerRules kRules[] = {
    {.name = "qwen2", .aliases = kQwen2Aliases, .patterns = kQwen2, .nfc = true, .whole_pieces = false},
    {.name = "qwen35", .aliases = {}, .patterns = kQwen35, .nfc = true, .whole_pieces = false},
    {.name = "llama-bpe", .aliases = kLlama3Aliases, .patterns = kLlama3, .nfc = false, .whole_pieces = true},
    {.name = "gpt-2", .aliases = kGpt2Aliases, .patterns = kGpt2, .nfc = false, .whole_pieces = false},
    {.name = "smollm", .aliases = kSmollmAliases, .patterns = kSmollm, .nfc = false, .whole_pieces = false},
};

std::string known_names() {
  std::string names;
  for (const PreTokenizerRules& rules : kRules) {
    fmt::format_to(std::back_inserter(names), "{}{}", names.empty() ? "" : ", ", rules.name);
    for (std::string_view alias : rules.aliases) fmt::format_to(std::back_inserter(names), ", {}", alias);
  }
  return names;
}

}  // namespace

Result<const PreTokenizerRules*> find_pre_tokenizer_rules(std::string_view name) {
  for (const PreTokenizerRules& rules : kRules)
    if (rules.name == name || std::ranges::find(rules.aliases, name) != rules.aliases.end()) return &rules;
  return Error{Code::kUnsupported,
               fmt::format("unknown pre-tokenizer '{}', known are {}", name, known_names())};
}

const PreTokenizerRules* find_rules_by_patterns(std::span<const std::string> patterns) {
  for (const PreTokenizerRules& rules : kRules)
    if (std::ranges::equal(rules.patterns, patterns)) return &rules;
  return nullptr;
}

}  // namespace forebay
