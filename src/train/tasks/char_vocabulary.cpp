#include "train/tasks/char_vocabulary.h"

#include <fmt/format.h>

#include "core/ensure.h"
#include "tokenizer/byte_map.h"
#include "tokenizer/tokenizer.h"

namespace forebay::train {

CharVocabulary::CharVocabulary(std::string_view alphabet) : alphabet_(alphabet) {
  for (const char c : alphabet_) {
    ENSURE(static_cast<unsigned char>(c) < 128, "an alphabet of ASCII characters");
    ENSURE(alphabet_.find(c) == alphabet_.rfind(c), "an alphabet with a character twice");
  }
}

Result<std::vector<int32_t>> CharVocabulary::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  for (const char c : text) {
    const size_t at = alphabet_.find(c);
    if (at == std::string::npos)
      return Error{Code::kInvalidArgument,
                   fmt::format("'{}': not in the model's alphabet '{}'", text, alphabet_)};
    ids.push_back(static_cast<int32_t>(at) + 2);
  }
  return ids;
}

std::vector<std::pair<std::string, GgufValue>> CharVocabulary::gguf_metadata() const {
  std::vector<std::string> tokens = {"<|im_end|>", "<|im_start|>"};
  std::vector<int64_t> kinds(2, static_cast<int64_t>(TokenKind::kControl));
  for (const char c : alphabet_) {
    tokens.push_back(to_byte_alphabet({&c, 1}));
    kinds.push_back(static_cast<int64_t>(TokenKind::kNormal));
  }
  return {{"tokenizer.ggml.model", GgufValue::string("gpt2")},
          {"tokenizer.ggml.pre", GgufValue::string("gpt-2")},
          {"tokenizer.ggml.tokens", GgufValue::string_array(std::move(tokens))},
          {"tokenizer.ggml.token_type", GgufValue::i32_array(std::move(kinds))},
          {"tokenizer.ggml.merges", GgufValue::string_array({})},
          {"tokenizer.ggml.eos_token_id", GgufValue::u32(kEnd)},
          {"tokenizer.ggml.padding_token_id", GgufValue::u32(kEnd)},
          {"tokenizer.ggml.bos_token_id", GgufValue::u32(kBegin)},
          {"tokenizer.ggml.add_bos_token", GgufValue::boolean(true)}};
}

}  // namespace forebay::train
