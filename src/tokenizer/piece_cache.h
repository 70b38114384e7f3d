/// Remembers the tokens of pieces already encoded: text repeats its words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace forebay {

/// Grows with what it is given, up to about 10 MB; then it starts afresh. Confined.
class PieceCache {
 public:
  /// Longer pieces hardly repeat.
  static constexpr size_t kMaxPieceBytes = 48;

  PieceCache();

  static uint64_t hash_of(std::string_view piece);

  /// The view lasts until the next insert().
  std::optional<std::span<const TokenId>> find(std::string_view piece, uint64_t hash) const;
  /// `piece` has at most kMaxPieceBytes and is not in the cache.
  void insert(std::string_view piece, uint64_t hash, std::span<const TokenId> ids);

 private:
  struct Slot {
    uint64_t hash;
    uint32_t first_byte, first_id;
    uint16_t n_bytes = 0;  // 0: empty
    uint16_t n_ids;
  };
  void grow();
  void clear();

  std::vector<Slot> slots_;
  size_t n_used_ = 0;
  std::string bytes_;
  std::vector<TokenId> ids_;
};

}  // namespace forebay
