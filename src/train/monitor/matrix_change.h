/// How a matrix moved away from its base: its spectrum, its leading directions, its entries.
/// Sources: arXiv:2511.08567 (spectral shift, angles, principal mask), arXiv:2505.11711 (sparse, full-rank
/// updates), Roy & Vetterli 2007 (effective rank).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <torch/torch.h>

namespace forebay::train {

struct MonitorOptions {
  int64_t rank = 0;             // leading directions that are compared; 0: a tenth of the smaller side
  double principal_rank = 0.1;  // of the principal mask (anchor/safe_mask.h)
  double principal_alpha = 0.3;
  /// Matrices of more elements are compared entry by entry only: an SVD takes rows x columns x the smaller.
  int64_t most_elements = int64_t{1} << 26;
};

/// NaN: not computed. Angles are in radians.
struct MatrixChange {
  int64_t rows = 0, columns = 0;
  bool identical = false;   // bit by bit: everything below is then exactly 0
  double changed = 0;       // share of entries whose bits differ
  double changed_bf16 = 0;  // after rounding to bf16
  double update_norm = 0;   // |W_t - W_0| / |W_0|, Frobenius
  int64_t rank = 0;         // k
  double spectral_shift = std::numeric_limits<double>::quiet_NaN();  // |s(W_t) - s(W_0)| / |s(W_0)|
  double angle_left = std::numeric_limits<double>::quiet_NaN();      // largest between the k left directions
  double angle_right = std::numeric_limits<double>::quiet_NaN();
  /// Share of the changed entries (bf16) that are principal ones of the base, over the principal share of all
  /// entries: 1 is what a random choice gives.
  double principal_overlap = std::numeric_limits<double>::quiet_NaN();
  double effective_rank = std::numeric_limits<double>::quiet_NaN();  // exp(entropy of s / sum s) of W_t - W_0
  double rank_99 = std::numeric_limits<double>::quiet_NaN();         // directions with 99 % of its energy

  /// Over the smaller side: 1 is full rank.
  double effective_rank_share() const {
    return effective_rank / static_cast<double>(std::min(rows, columns));
  }
};

/// Both [R, C], of the same type. In f64 on the CPU.
MatrixChange compare(const torch::Tensor& base_RC, const torch::Tensor& now_RC,
                     const MonitorOptions& options);

/// The largest principal angle between the spans of two orthonormal bases [N, k] (f64): exact to rounding for
/// small angles too.
double largest_angle(const torch::Tensor& a_Nk, const torch::Tensor& b_Nk);

}  // namespace forebay::train
