/// Bools as bits, lowest first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/torch.h>

namespace forebay::train {

/// ceil(n / 8) bytes of a flat bool tensor; unused bits are 0. The packing happens where the tensor is.
std::vector<uint8_t> pack_bits(const torch::Tensor& bits_N);
/// The first n bits as a flat bool tensor on the CPU.
torch::Tensor unpack_bits(std::span<const uint8_t> bytes, int64_t n);

}  // namespace forebay::train
