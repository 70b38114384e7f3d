#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "convert/checkpoint_config.h"

namespace forebay::convert {

/// The order of V heads of the gated delta rule. Checkpoints group them: with r = V heads per K head, K head
/// k's are k*r .. k*r + r-1. Tiled, V head h belongs to K head h mod n_k_heads.
class VHeadOrder {
 public:
  VHeadOrder(const GatedDeltaDims& dims, bool is_tiled) {
    const uint64_t n_k = dims.n_k_heads, per_k = dims.n_v_heads / n_k;
    for (uint64_t head = 0; head < dims.n_v_heads; ++head)
      order_.push_back(static_cast<uint32_t>(is_tiled ? head % n_k * per_k + head / n_k : head));
  }

  /// The checkpoint's head at each place.
  const std::vector<uint32_t>& order() const { return order_; }
  /// As a map of rows: heads of `rows_per_head` rows behind `first` rows that stay.
  std::function<uint64_t(uint64_t)> rows(uint64_t rows_per_head, uint64_t first) const {
    return [order = order_, rows_per_head, first](uint64_t row) {
      if (row < first) return row;
      const uint64_t head = (row - first) / rows_per_head;
      return first + order[head] * rows_per_head + (row - first) % rows_per_head;
    };
  }

 private:
  std::vector<uint32_t> order_;
};

}  // namespace forebay::convert
