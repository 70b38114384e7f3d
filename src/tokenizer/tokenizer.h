/// Text <-> token ids: byte-level BPE as GGUF files carry it (tokenizer.ggml.*).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

namespace forebay {

using TokenId = int32_t;

/// Values as in tokenizer.ggml.token_type.
enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

/// What a vocabulary consists of; model files and checkpoints both produce one.
struct Vocabulary {
  std::string pre;                  // "qwen2", "qwen35", "smollm", ...
  std::vector<std::string> tokens;  // index = id; byte-mapped text for normal tokens, literal for added ones
  std::vector<TokenKind> kinds;     // same length
  std::vector<std::string> merges;  // "left right", rank = index
  std::optional<TokenId> bos, eos, pad;
  bool add_bos = false;
  bool add_eos = false;
  /// Whether segments are normalised to NFC; absent, what models with this `pre` were trained with.
  std::optional<bool> nfc = std::nullopt;
};

struct EncodeOptions {
  /// Match control tokens in the text. User-defined tokens are matched either way.
  bool parse_special = true;
  /// Normalise segments between added tokens to NFC where the vocabulary asks for it, as training did.
  bool nfc = true;
};

/// Immutable after creation. Thread-safe.
class Tokenizer {
 public:
  /// Errors: kUnsupported names an unknown pre-tokenizer; kCorrupt names the token or merge that is wrong.
  static Result<Tokenizer> create(Vocabulary vocabulary);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Never fails: invalid UTF-8 bytes become U+FFFD, as HF does. No BOS or EOS is added (see add_bos()).
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// The exact bytes of the tokens; control tokens only with `specials`, unused ones never.
  std::string decode(std::span<const TokenId> ids, bool specials = false) const;
  /// Bytes of one token, which may be part of a UTF-8 character. Empty for control (unless `specials`),
  /// unused and out-of-range ids.
  std::string_view token_bytes(TokenId id, bool specials = false) const;

  int n_tokens() const;
  TokenKind kind(TokenId id) const;
  /// The id whose literal text this is ("<think>"), if that is a control or user-defined token.
  std::optional<TokenId> find_special(std::string_view text) const;
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool add_bos() const;
  /// End of generation: the file's eos, <|im_end|>, <|endoftext|> and the other ids that end a turn.
  std::span<const TokenId> stop_ids() const;
  bool is_stop(TokenId id) const;
  const Vocabulary& vocabulary() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Joins token bytes into text that is valid UTF-8 at every step: an incomplete character is held back until
/// its bytes arrive. Confined.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool specials = false)
      : tokenizer_(&tokenizer), specials_(specials) {}
  /// The text that became complete with this token, possibly empty.
  std::string push(TokenId id);
  /// What was held back, incomplete sequences replaced by U+FFFD.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool specials_;
  std::string pending_;
};

}  // namespace forebay
