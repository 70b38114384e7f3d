/// Numbers of 1 to 8 bits, and of 16, as bytes without gaps: code i of the flattened tensor is bits
/// [i * b, i * b + b) of the stream, bit 0 being the lowest bit of byte 0. The last byte is filled with
/// zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include <torch/torch.h>

namespace forebay::train {

constexpr int64_t packed_bytes(int64_t n_codes, int64_t bits) {
  return (n_codes * bits + 7) / 8;
}

/// uint8 codes (each below 2^bits), any shape -> uint8 [packed_bytes], on the same device. bits 1..8.
torch::Tensor pack_bits(const torch::Tensor& codes, int bits);
/// The reverse: uint8 [n_codes]. packed must hold packed_bytes(n_codes, bits).
torch::Tensor unpack_bits(const torch::Tensor& packed, int64_t n_codes, int bits);

/// The same on any device, which the two above take where it is not the CPU. bits 1..7.
torch::Tensor pack_bits_with_tensors(const torch::Tensor& codes, int bits);
torch::Tensor unpack_bits_with_tensors(const torch::Tensor& packed, int64_t n_codes, int bits);

/// bf16, any shape -> uint8 [2 n], little-endian; and back.
torch::Tensor bf16_bytes(const torch::Tensor& values);
torch::Tensor bf16_from_bytes(const torch::Tensor& bytes);

}  // namespace forebay::train
