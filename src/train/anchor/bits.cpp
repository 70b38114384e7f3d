#include "train/anchor/bits.h"

#include <cstring>

namespace forebay::train {

std::vector<uint8_t> pack_bits(const torch::Tensor& bits_N) {
  const int64_t n = bits_N.numel(), n_bytes = (n + 7) / 8;
  if (n == 0) return {};
  torch::Tensor padded = torch::zeros({n_bytes * 8}, bits_N.options().dtype(torch::kInt32));
  padded.narrow(0, 0, n).copy_(bits_N.reshape({-1}));
  const torch::Tensor weights = torch::tensor({1, 2, 4, 8, 16, 32, 64, 128}, padded.options());
  const torch::Tensor bytes =
      (padded.view({n_bytes, 8}) * weights).sum(1).to(torch::kUInt8).cpu().contiguous();
  std::vector<uint8_t> out(static_cast<size_t>(n_bytes));
  std::memcpy(out.data(), bytes.data_ptr<uint8_t>(), out.size());
  return out;
}

torch::Tensor unpack_bits(std::span<const uint8_t> bytes, int64_t n) {
  torch::Tensor bits = torch::empty({n}, torch::kBool);
  bool* out = bits.data_ptr<bool>();
  for (int64_t i = 0; i < n; ++i) out[i] = (bytes[static_cast<size_t>(i / 8)] >> (i % 8) & 1) != 0;
  return bits;
}

}  // namespace forebay::train
