#include "tokenizer/added_tokens.h"

#include <algorithm>

namespace forebay {
namespace {

/// The first of [begin, end) that `holds`, which then holds for all after it.
template <typename Predicate>
size_t first_index(size_t begin, size_t end, Predicate holds) {
  while (begin < end) {
    size_t middle = begin + (end - begin) / 2;
    if (holds(middle))
      end = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  std::ranges::sort(tokens_, {}, &Token::text);
  for (size_t i = 0; i < tokens_.size(); ++i) {
    Range& range = by_first_byte_[static_cast<uint8_t>(tokens_[i].text[0])];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
  }
}

std::optional<AddedTokens::Match> AddedTokens::longest_at(std::string_view text, size_t offset) const {
  std::optional<Match> longest;
  auto [begin, end] = by_first_byte_[static_cast<uint8_t>(text[offset])];
  // Invariant: tokens_[begin, end) are those that agree with the text in the first n bytes.
  for (size_t n = 1; begin < end; ++n) {
    if (tokens_[begin].text.size() == n) {
      longest = Match{offset, n, tokens_[begin].id};
      ++begin;
    }
    if (offset + n == text.size()) break;
    auto byte_at_n = [&](size_t i) { return static_cast<uint8_t>(tokens_[i].text[n]); };
    auto byte = static_cast<uint8_t>(text[offset + n]);
    begin = first_index(begin, end, [&](size_t i) { return byte_at_n(i) >= byte; });
    end = first_index(begin, end, [&](size_t i) { return byte_at_n(i) > byte; });
  }
  return longest;
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t from) const {
  for (size_t offset = from; offset < text.size(); ++offset) {
    if (by_first_byte_[static_cast<uint8_t>(text[offset])].end == 0) continue;
    if (auto match = longest_at(text, offset)) return match;
  }
  return std::nullopt;
}

std::optional<TokenId> AddedTokens::id_of(std::string_view text) const {
  auto at =
      std::ranges::lower_bound(tokens_, text, {}, [](const Token& t) { return std::string_view(t.text); });
  if (at == tokens_.end() || at->text != text) return std::nullopt;
  return at->id;
}

}  // namespace forebay
