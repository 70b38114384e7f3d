/// prf.h for many rows at once, in integer arithmetic on tensors: the same bits on every device.
#pragma once

#include <cstdint>

#include <torch/torch.h>

namespace forebay::train {

/// int64 [N]: the streams of rows first_row .. first_row + n_rows - 1 of `stream`.
torch::Tensor prf_row_streams(uint64_t stream, int64_t first_row, int64_t n_rows, torch::Device device);

/// f32 [N, width]: prf_uniform of element j of each row's stream. On the CPU a plain loop, elsewhere
/// prf_uniform_tensor; both give the same bits.
torch::Tensor prf_uniform_rows(uint64_t stream, int64_t first_row, int64_t n_rows, int64_t width,
                               torch::Device device);
torch::Tensor prf_uniform_tensor(uint64_t stream, int64_t first_row, int64_t n_rows, int64_t width,
                                 torch::Device device);

/// int64 [N, k]: prf_exact_k of each row's stream. Likewise.
torch::Tensor prf_exact_k_rows(uint64_t stream, int64_t first_row, int64_t n_rows, int64_t width, int64_t k,
                               torch::Device device);
torch::Tensor prf_exact_k_tensor(uint64_t stream, int64_t first_row, int64_t n_rows, int64_t width, int64_t k,
                                 torch::Device device);

}  // namespace forebay::train
