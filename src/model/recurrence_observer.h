/// What the gated-delta layers' recurrences ran on, for those who follow them: staleness, transport.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace forebay {

/// Called on the thread of the forward pass, once per span and gated-delta block, in order of cells.
class RecurrenceObserver {
 public:
  virtual ~RecurrenceObserver() = default;
  /// T rows from `first_cell` on: k_TK [T][n_k_heads * k_dim] of unit length per head, decay_TH and beta_TH
  /// [T][n_v_heads]. Borrowed for the call.
  virtual void observe(int block, int64_t first_cell, TensorView<const float> k_TK,
                       TensorView<const float> decay_TH, TensorView<const float> beta_TH) = 0;
};

}  // namespace forebay
