/// Rotary position embedding on the first n_rot values of each head.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/context.h"
#include "tensor/view.h"

namespace forebay {

/// cos and sin of position * theta^(-2i / n_rot), i in [0, n_rot/2), per row: computed in f64 once per
/// window, used by every layer.
struct RopeTable {
  int n_rot = 0;
  std::vector<float> cos;  // [T][n_rot/2]
  std::vector<float> sin;

  void fill(std::span<const int64_t> positions, int n_rot, double theta);
};

enum class RopePairs {
  kHalves,    // (i, i + n_rot/2), the NEOX layout
  kAdjacent,  // (2i, 2i + 1)
};

/// Rotates heads of x_T(H*head_dim) in place: y_a = a cos - b sin, y_b = b cos + a sin for each pair (a, b).
/// Row t of x uses row t of the table.
/// Source: Su et al. 2021, arXiv:2104.09864.
void apply_rope(KernelContext& ctx, const RopeTable& table, RopePairs pairs, int n_heads, int head_dim,
                TensorView<float> x_TH);

/// One vector with its own table row.
void apply_rope_row(const float* cos, const float* sin, int n_rot, RopePairs pairs, float* x);

}  // namespace forebay
