/// Orthonormal columns, the same on every machine.
#pragma once

#include <cstdint>

#include <torch/torch.h>

namespace forebay::train {

/// The Q of y = Q R with a positive diagonal of R, which makes it unique: y [W, r], any float type, r <= W;
/// Q is f32 on the CPU. Gram and Schmidt in f64, in one fixed order, each column twice. A column that the
/// ones before it span gets a direction drawn from `spare`.
torch::Tensor orthonormal(const torch::Tensor& y_WR, uint64_t spare);

/// r orthonormal directions drawn from `stream`.
torch::Tensor random_frame(uint64_t stream, int64_t width, int64_t rank);

}  // namespace forebay::train
