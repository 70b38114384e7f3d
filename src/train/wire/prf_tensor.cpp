#include "train/wire/prf_tensor.h"

#include <algorithm>
#include <vector>

#include "train/wire/prf.h"

namespace forebay::train {
namespace {

torch::TensorOptions integers(torch::Device device) {
  return torch::TensorOptions().dtype(torch::kInt64).device(device);
}

int64_t as_signed(uint64_t bits) {
  return static_cast<int64_t>(bits);
}

/// A logical shift: the one of int64 tensors copies the sign.
torch::Tensor shifted(const torch::Tensor& z, int64_t by) {
  return z.bitwise_right_shift(by).bitwise_and_(as_signed(~uint64_t{0} >> by));
}

/// prf_absorb(key, value), elementwise with broadcasting; `last_shift` leaves out what only the low half
/// sees.
torch::Tensor absorb(const torch::Tensor& key, const torch::Tensor& value, bool last_shift) {
  torch::Tensor z = key.bitwise_xor(value).add_(as_signed(kPrfGolden));
  z.bitwise_xor_(shifted(z, 30)).mul_(as_signed(kPrfMix1));
  z.bitwise_xor_(shifted(z, 27)).mul_(as_signed(kPrfMix2));
  if (last_shift) z.bitwise_xor_(shifted(z, 31));
  return z;
}

torch::Tensor columns(int64_t width, torch::Device device) {
  return torch::arange(width, integers(device)).unsqueeze(0);
}

}  // namespace

torch::Tensor prf_row_streams(uint64_t stream, int64_t first_row, int64_t n_rows, torch::Device device) {
  const torch::Tensor rows = torch::arange(first_row, first_row + n_rows, integers(device));
  return absorb(torch::full({1}, as_signed(stream), integers(device)), rows, true);
}

torch::Tensor prf_uniform_tensor(uint64_t stream, int64_t first_row, int64_t n_rows, int64_t width,
                                 torch::Device device) {
  const torch::Tensor rows = prf_row_streams(stream, first_row, n_rows, device).unsqueeze(1);
  // Bits 40 to 63 are the same before the last shift by 31, which reaches only bits 0 to 32.
  const torch::Tensor bits = absorb(rows, columns(width, device), false);
  return shifted(bits, 40).to(torch::kFloat).mul_(0x1p-24);
}

torch::Tensor prf_uniform_rows(uint64_t stream, int64_t first_row, int64_t n_rows, int64_t width,
                               torch::Device device) {
  if (!device.is_cpu()) return prf_uniform_tensor(stream, first_row, n_rows, width, device);
  torch::Tensor out = torch::empty({n_rows, width}, torch::kFloat);
  float* const data = out.data_ptr<float>();
  at::parallel_for(0, n_rows, 1 + 65536 / std::max<int64_t>(width, 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t row = prf_at(stream, first_row + i);
      float* const to = data + i * width;
      for (int64_t j = 0; j < width; ++j) to[j] = prf_uniform(prf_at(row, j));
    }
  });
  return out;
}

torch::Tensor prf_exact_k_rows(uint64_t stream, int64_t first_row, int64_t n_rows, int64_t width, int64_t k,
                               torch::Device device) {
  if (!device.is_cpu()) return prf_exact_k_tensor(stream, first_row, n_rows, width, k, device);
  torch::Tensor out = torch::empty({n_rows, k}, torch::kInt64);
  int64_t* const data = out.data_ptr<int64_t>();
  at::parallel_for(0, n_rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::vector<int64_t> row = prf_exact_k(prf_at(stream, first_row + i), width, k);
      std::copy(row.begin(), row.end(), data + i * k);
    }
  });
  return out;
}

torch::Tensor prf_exact_k_tensor(uint64_t stream, int64_t first_row, int64_t n_rows, int64_t width, int64_t k,
                                 torch::Device device) {
  const torch::Tensor rows = prf_row_streams(stream, first_row, n_rows, device).unsqueeze(1);
  const torch::Tensor bits = absorb(rows, columns(width, device), true);
  const torch::Tensor ranks =
      shifted(bits, 21).mul_(int64_t{1} << kPrfIndexBits).bitwise_or_(columns(width, device));
  const torch::Tensor smallest =
      std::get<0>(torch::topk(ranks, k, /*dim=*/1, /*largest=*/false, /*sorted=*/false));
  const torch::Tensor index = smallest.bitwise_and((int64_t{1} << kPrfIndexBits) - 1);
  return std::get<0>(torch::sort(index, /*dim=*/1));
}

}  // namespace forebay::train
