#include "tokenizer/token_bytes.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "tokenizer/byte_map.h"
#include "tokenizer/vocabulary_check.h"

namespace forebay {
namespace {

std::optional<std::string> parse_byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  auto [end, error] = std::from_chars(&text[3], &text[5], byte, 16);
  if (error != std::errc{} || end != &text[5]) return std::nullopt;
  return std::string(1, static_cast<char>(byte));
}

}  // namespace

Result<TokenBytes> TokenBytes::create(const Vocabulary& vocabulary) {
  TokenBytes table;
  table.ends_.reserve(vocabulary.tokens.size() + 1);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& text = vocabulary.tokens[id];
    std::optional<std::string> bytes;
    switch (vocabulary.kinds[id]) {
      case TokenKind::kNormal:
        bytes = from_byte_alphabet(text);
        if (!bytes)
          return Error{Code::kCorrupt,
                       fmt::format("token {} {}: a normal token has only characters of the byte alphabet", id,
                                   quote_text(text))};
        break;
      case TokenKind::kByte:
        bytes = parse_byte_token(text);
        if (!bytes)
          return Error{Code::kCorrupt,
                       fmt::format("token {} {}: a byte token looks like <0x0A>", id, quote_text(text))};
        break;
      case TokenKind::kControl:
      case TokenKind::kUnknown:
      case TokenKind::kUserDefined:
        bytes = text;
        break;
      case TokenKind::kUnused:
        break;
    }
    if (bytes) table.bytes_ += *bytes;
    if (table.bytes_.size() > UINT32_MAX)
      return Error{Code::kCorrupt, fmt::format("the texts of tokens 0 to {} have more than 4 GiB", id)};
    table.ends_.push_back(static_cast<uint32_t>(table.bytes_.size()));
  }
  return table;
}

}  // namespace forebay
