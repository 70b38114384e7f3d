#include "tokenizer/vocabulary_check.h"

#include <iterator>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "tokenizer/byte_map.h"
#include "tokenizer/utf8.h"

namespace forebay {
namespace {

// Ids by text, without unused tokens. The keys view the vocabulary's strings.
using TokenIndex = std::unordered_map<std::string_view, TokenId>;

Result<void> check_id(const char* name, const std::optional<TokenId>& id, size_t n_tokens) {
  if (!id || (*id >= 0 && static_cast<size_t>(*id) < n_tokens)) return {};
  return Error{Code::kCorrupt,
               fmt::format("{} token id {}, the vocabulary has {} tokens", name, *id, n_tokens)};
}

Result<void> check_tokens(const Vocabulary& vocabulary, TokenIndex& index) {
  const auto& tokens = vocabulary.tokens;
  if (tokens.empty()) return Error{Code::kCorrupt, "the vocabulary has no tokens"};
  if (tokens.size() > static_cast<size_t>(std::numeric_limits<TokenId>::max()))
    return Error{Code::kCorrupt,
                 fmt::format("the vocabulary has {} tokens, ids have 31 bits", tokens.size())};
  if (vocabulary.kinds.size() != tokens.size())
    return Error{Code::kCorrupt, fmt::format("the vocabulary has {} tokens but {} token types", tokens.size(),
                                             vocabulary.kinds.size())};
  TRY(check_id("bos", vocabulary.bos, tokens.size()));
  TRY(check_id("eos", vocabulary.eos, tokens.size()));
  TRY(check_id("pad", vocabulary.pad, tokens.size()));

  index.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    auto kind = static_cast<int>(vocabulary.kinds[id]);
    if (kind < 1 || kind > 6)
      return Error{Code::kCorrupt,
                   fmt::format("token {} {}: type {}, wanted 1 to 6", id, quote_text(tokens[id]), kind)};
    if (vocabulary.kinds[id] == TokenKind::kUnused) continue;
    if (tokens[id].empty()) return Error{Code::kCorrupt, fmt::format("token {} has no text", id)};
    auto [first, is_new] = index.emplace(tokens[id], static_cast<TokenId>(id));
    if (!is_new)
      return Error{Code::kCorrupt, fmt::format("token {} {} has the text of token {}", id,
                                               quote_text(tokens[id]), first->second)};
  }
  return {};
}

Result<std::vector<Merge>> parse_merges(const Vocabulary& vocabulary, const TokenIndex& index) {
  std::vector<Merge> merges;
  merges.reserve(vocabulary.merges.size());
  std::string whole;
  for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    std::string_view line = vocabulary.merges[rank];
    // From 1: a symbol is not empty. The byte alphabet has no space.
    size_t space = line.find(' ', 1);
    if (space == line.npos || space + 1 == line.size())
      return Error{Code::kCorrupt, fmt::format("merge {} {}: wanted two symbols and a space between", rank,
                                               quote_text(line))};
    whole.assign(line.substr(0, space)).append(line.substr(space + 1));
    Merge merge;
    for (auto [text, id] : {std::pair{line.substr(0, space), &merge.left},
                            {line.substr(space + 1), &merge.right},
                            {std::string_view(whole), &merge.merged}}) {
      auto known = index.find(text);
      if (known == index.end())
        return Error{Code::kCorrupt,
                     fmt::format("merge {} {}: {} is not a token", rank, quote_text(line), quote_text(text))};
      *id = known->second;
    }
    merges.push_back(merge);
  }
  return merges;
}

std::array<TokenId, 256> find_byte_tokens(const TokenIndex& index) {
  std::array<TokenId, 256> ids;
  for (size_t byte = 0; byte < 256; ++byte) {
    auto known = index.find(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
    ids[byte] = known == index.end() ? Bpe::kNoToken : known->second;
  }
  return ids;
}

}  // namespace

std::string quote_text(std::string_view text) {
  constexpr size_t kMaxBytes = 40;
  std::string out = "'";
  std::string_view rest = text;
  while (!rest.empty() && out.size() < kMaxBytes) {
    utf8::Char c = utf8::first_char(rest);
    std::string_view bytes = rest.substr(0, c.n_bytes);
    bool control = c.code_point < 0x20 || (c.code_point >= 0x7F && c.code_point < 0xA0);
    bool line_break = c.code_point == 0x2028 || c.code_point == 0x2029;
    bool printable = c.status == utf8::Status::kValid && !control && !line_break;
    if (printable)
      out += bytes;
    else
      for (char byte : bytes)
        fmt::format_to(std::back_inserter(out), "\\x{:02X}", static_cast<uint8_t>(byte));
    rest.remove_prefix(c.n_bytes);
  }
  return out + (rest.empty() ? "'" : fmt::format("...' ({} bytes)", text.size()));
}

Result<CheckedVocabulary> check_vocabulary(const Vocabulary& vocabulary) {
  TokenIndex index;
  TRY(check_tokens(vocabulary, index));
  return CheckedVocabulary{.merges = TRY(parse_merges(vocabulary, index)),
                           .byte_tokens = find_byte_tokens(index)};
}

}  // namespace forebay
