#include "train/anchor/safe_mask.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/anchor/bits.h"

namespace forebay::train {
namespace {

/// true at the `n` first entries by value (largest or smallest first), then by index.
torch::Tensor extremes(const torch::Tensor& values_RC, int64_t n, bool largest) {
  const torch::Tensor flat = torch::nan_to_num(values_RC).reshape({-1}).contiguous();
  const float* v = flat.data_ptr<float>();
  std::vector<int64_t> order(static_cast<size_t>(flat.numel()));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto before = [v, largest](int64_t a, int64_t b) {
    if (v[a] != v[b]) return largest ? v[a] > v[b] : v[a] < v[b];
    return a < b;
  };
  if (n < flat.numel()) std::nth_element(order.begin(), order.begin() + n, order.end(), before);
  torch::Tensor mask = torch::zeros({flat.numel()}, torch::kBool);
  for (int64_t i = 0; i < std::min(n, flat.numel()); ++i)
    mask.data_ptr<bool>()[order[static_cast<size_t>(i)]] = true;
  return mask.view(values_RC.sizes());
}

int64_t share(double alpha, int64_t n) {
  return static_cast<int64_t>(std::ceil(alpha * static_cast<double>(n)));
}

torch::Tensor principal_of_matrix(const torch::Tensor& w_RC, const SafeMaskOptions& options) {
  const int64_t smaller = std::min(w_RC.size(0), w_RC.size(1));
  const int64_t k = std::min(smaller, share(options.rank, smaller));
  const auto [u, s, vh] = torch::linalg_svd(w_RC, /*full_matrices=*/false);
  const torch::Tensor low_rank = torch::matmul(u.narrow(1, 0, k) * s.narrow(0, 0, k), vh.narrow(0, 0, k));
  return extremes(low_rank.abs(), share(options.alpha, w_RC.numel()), true);
}

/// Each matrix of a stack by `make`.
template <typename Make>
torch::Tensor by_matrix(const torch::Tensor& w, const Make& make) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor base = w.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  const torch::Tensor stack = base.view({-1, base.size(-2), base.size(-1)});
  std::vector<torch::Tensor> masks;
  for (int64_t i = 0; i < stack.size(0); ++i) masks.push_back(make(stack[i]));
  return torch::stack(masks).view(base.sizes());
}

}  // namespace

torch::Tensor principal_mask(const torch::Tensor& w, const SafeMaskOptions& options) {
  if (w.dim() < 2 || w.numel() == 0) return torch::zeros(w.sizes(), torch::kBool);
  return by_matrix(w, [&](const torch::Tensor& m) { return principal_of_matrix(m, options); });
}

torch::Tensor safe_mask(const torch::Tensor& w, const SafeMaskOptions& options) {
  if (w.dim() < 2 || w.numel() == 0) return torch::ones(w.sizes(), torch::kBool);
  return by_matrix(w, [&](const torch::Tensor& m) {
    const torch::Tensor low = extremes(m.abs(), share(options.alpha, m.numel()), false);
    return low.logical_or(principal_of_matrix(m, options).logical_not());
  });
}

SafeMasks safe_masks(std::span<const torch::Tensor> base, const SafeMaskOptions& options) {
  SafeMasks out;
  Sha256Sum sum;
  for (const torch::Tensor& w : base) {
    const torch::Tensor mask = safe_mask(w, options);
    out.n_safe += mask.sum().item<int64_t>();
    out.n_all += mask.numel();
    const std::vector<uint8_t> bits = pack_bits(mask.reshape({-1}));
    sum.add(std::as_bytes(std::span(bits)));
    out.masks.push_back(mask);
  }
  out.hash = sum.finish();
  return out;
}

}  // namespace forebay::train
