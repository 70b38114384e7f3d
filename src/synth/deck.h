/// Random weights at the speed of copying. Encoding every weight of a large file would take hours; instead a
/// few thousand runs of blocks ("cards") are encoded once, and a tensor is made by dealing cards at random.
///
/// Every card is a legal piece of its format with finite weights of the wanted mean and deviation. A card is
/// dealt with equal chance to every place, so two rows of a matrix are independent but for the few places
/// where they got the same card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "forebay/result.h"

#include "synth/random.h"
#include "tensor/dtype.h"

namespace forebay::synth {

/// How a tensor's weights are distributed.
struct Normal {
  double mean = 0, deviation = 1;

  auto operator<=>(const Normal&) const = default;
};

/// Immutable, thread-safe.
class Deck {
 public:
  /// As many weights as a deck has at most: they fit in a core's cache, and are encoded in a fraction of a
  /// second in the slowest format.
  static constexpr uint64_t kMaxWeights = 1 << 19;

  /// Cards for rows of `n_columns` weights of `type`, which has a codec and whose block divides the row; of
  /// about `n_weights` weights, a power of two. The weights' overall deviation, as decoded, is within a few
  /// per cent of the wanted one (formats whose scales are powers of two: within a factor of 1.5). Types that
  /// this version cannot encode get random codes under a chosen scale.
  static Result<Deck> make(DType type, uint64_t n_columns, uint64_t n_weights, const Normal& distribution,
                           Key key);

  /// Fills a row: `key` and the row's number say with which cards.
  void deal(Key key, uint64_t row, std::byte* out) const;

 private:
  uint64_t cards_per_row_ = 0;
  uint64_t card_bytes_ = 0;
  uint64_t mask_ = 0;  // number of cards - 1
  std::vector<std::byte> cards_;
};

}  // namespace forebay::synth
