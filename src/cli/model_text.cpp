#include "cli/model_text.h"

#include "engine/gguf_vocabulary.h"

namespace forebay::cli {

Result<Tokenizer> tokenizer_of(const GgufFile& file) {
  const auto made = [&]() -> Result<Tokenizer> {
    if (!file.metadata().has("tokenizer.ggml.tokens"))
      return Error{Code::kUnsupported, "the file has no vocabulary (tokenizer.ggml.tokens)"};
    return Tokenizer::create(TRY(vocabulary_from_gguf(file.metadata())));
  };
  Result<Tokenizer> tokenizer = made();
  if (!tokenizer) return std::move(tokenizer).error().in(file.path().string());
  return tokenizer;
}

std::string special_text(const GgufFile& file, std::string_view key) {
  const Result<uint64_t> id = file.metadata().get_uint(key);
  const Result<std::span<const std::string>> tokens = file.metadata().get_strings("tokenizer.ggml.tokens");
  return id && tokens && *id < tokens->size() ? (*tokens)[*id] : std::string();
}

}  // namespace forebay::cli
