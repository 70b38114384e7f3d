/// Byte-pair encoding of one piece: the adjacent pair with the lowest rank merges first, the leftmost on
/// ties, until no adjacent pair has a rank.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace forebay {

/// A merge by ids; its rank is its place in the list.
struct Merge {
  TokenId left, right, merged;
};

/// Working memory of encode(), kept between calls. Confined.
struct BpeScratch {
  struct Symbol {
    TokenId id;
    uint32_t previous, next;
    uint32_t pair_rank;  // of this symbol and the next
  };
  struct Candidate {
    uint32_t rank;
    uint32_t left;  // a symbol
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
};

/// Immutable. Thread-safe.
class Bpe {
 public:
  static constexpr TokenId kNoToken = -1;

  /// Of two merges of one pair the first counts. `byte_tokens` has kNoToken for bytes without a token: they
  /// vanish before merging, as in HF.
  Bpe(const std::vector<Merge>& merges, const std::array<TokenId, 256>& byte_tokens);

  /// Appends the tokens of `piece`. n log n in its bytes, of which there are fewer than 2^32.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;

 private:
  static constexpr uint32_t kNoRank = UINT32_MAX;

  struct Slot {
    uint64_t pair;
    uint32_t rank = kNoRank;  // empty
  };
  const Slot& slot_of(TokenId left, TokenId right) const;

  std::array<TokenId, 256> byte_tokens_;
  std::vector<Slot> slots_;  // open addressing, at most half full
  std::vector<TokenId> merged_by_rank_;
  int slot_shift_;
};

}  // namespace forebay
