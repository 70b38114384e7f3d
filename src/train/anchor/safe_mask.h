/// Which weights may change without touching a matrix's principal subspace: small ones, and those that its
/// low-rank part does not make large. Both ends compute it from the shared base, so it costs no bytes.
/// Source: arXiv:2511.08567.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/torch.h>

#include "core/sha256.h"

namespace forebay::train {

struct SafeMaskOptions {
  double rank = 0.1;   // the low-rank part keeps ceil(rank x min(rows, columns)) directions
  double alpha = 0.3;  // share of entries that count as large (of the low-rank part) and as small (of W)
};

/// bool, of w's shape: low OR NOT principal, where principal are the ceil(alpha n) largest |W_k| of its
/// rank-k part and low the ceil(alpha n) smallest |W|; ties go to the lower index. Tensors of more than two
/// dimensions are stacks of matrices; vectors and scalars are safe throughout. f32 on the CPU.
torch::Tensor safe_mask(const torch::Tensor& w, const SafeMaskOptions& options);
/// The principal entries alone, which monitors compare updates with.
torch::Tensor principal_mask(const torch::Tensor& w, const SafeMaskOptions& options);

struct SafeMasks {
  std::vector<torch::Tensor> masks;
  int64_t n_safe = 0, n_all = 0;
  /// Of all bits in order. Processes compare it before the first fire and after a resume: libraries differ in
  /// the last bit of an SVD, and a mask that differs would send signs to the wrong weights.
  Sha256 hash = {};
};
SafeMasks safe_masks(std::span<const torch::Tensor> base, const SafeMaskOptions& options);

}  // namespace forebay::train
