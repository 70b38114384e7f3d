#include "engine/gguf_vocabulary.h"

#include <fmt/format.h>

namespace forebay {
namespace {

Result<std::optional<TokenId>> optional_id(const GgufMetadata& metadata, std::string_view key,
                                           size_t n_tokens) {
  if (!metadata.has(key)) return std::optional<TokenId>();
  const uint64_t id = TRY(metadata.get_uint(key));
  // Some writers store -1 or 2^32 - 1 for "none".
  if (id == UINT32_MAX) return std::optional<TokenId>();
  if (id >= n_tokens)
    return Error{Code::kCorrupt, fmt::format("{}: {}, the vocabulary has {} tokens", key, id, n_tokens)};
  return std::optional<TokenId>(static_cast<TokenId>(id));
}

}  // namespace

Result<Vocabulary> vocabulary_from_gguf(const GgufMetadata& metadata) {
  const std::string model = TRY(metadata.get_string("tokenizer.ggml.model"));
  if (model != "gpt2")
    return Error{Code::kUnsupported,
                 fmt::format("tokenizer.ggml.model: '{}', only 'gpt2' (byte-level BPE) is supported", model)};
  Vocabulary v;
  v.pre = TRY(metadata.get_string_or("tokenizer.ggml.pre", "default"));
  const std::span<const std::string> tokens = TRY(metadata.get_strings("tokenizer.ggml.tokens"));
  v.tokens.assign(tokens.begin(), tokens.end());
  const std::span<const std::string> merges = TRY(metadata.get_strings("tokenizer.ggml.merges"));
  v.merges.assign(merges.begin(), merges.end());
  v.kinds.assign(v.tokens.size(), TokenKind::kNormal);
  if (metadata.has("tokenizer.ggml.token_type")) {
    const std::vector<int64_t> kinds = TRY(metadata.get_ints("tokenizer.ggml.token_type"));
    if (kinds.size() != v.tokens.size())
      return Error{Code::kCorrupt, fmt::format("tokenizer.ggml.token_type: {} entries for {} tokens",
                                               kinds.size(), v.tokens.size())};
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] < 1 || kinds[i] > 6)
        return Error{Code::kCorrupt,
                     fmt::format("tokenizer.ggml.token_type[{}]: {}, expected 1 to 6", i, kinds[i])};
      v.kinds[i] = static_cast<TokenKind>(kinds[i]);
    }
  }
  v.bos = TRY(optional_id(metadata, "tokenizer.ggml.bos_token_id", v.tokens.size()));
  v.eos = TRY(optional_id(metadata, "tokenizer.ggml.eos_token_id", v.tokens.size()));
  v.pad = TRY(optional_id(metadata, "tokenizer.ggml.padding_token_id", v.tokens.size()));
  v.add_bos = TRY(metadata.get_bool_or("tokenizer.ggml.add_bos_token", false));
  v.add_eos = TRY(metadata.get_bool_or("tokenizer.ggml.add_eos_token", false));
  // Written by our converter: checkpoints of one family differ in this, and no common key says it.
  if (metadata.has("forebay.tokenizer.nfc")) v.nfc = TRY(metadata.get_bool("forebay.tokenizer.nfc"));
  return v;
}

}  // namespace forebay
