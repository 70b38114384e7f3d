#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace forebay::train::testing {

/// Compares the gradient of the scalar `f` of f64 leaves with central differences, at up to 40 places of
/// each.
inline void expect_gradient(const std::function<torch::Tensor()>& f, std::vector<torch::Tensor> leaves) {
  const auto gradients = torch::autograd::grad({f()}, leaves);
  const torch::NoGradGuard no_gradients;
  for (size_t l = 0; l < leaves.size(); ++l) {
    torch::Tensor flat = leaves[l].view({-1});
    const int64_t stride = std::max<int64_t>(1, flat.numel() / 40);
    for (int64_t i = 0; i < flat.numel(); i += stride) {
      constexpr double kStep = 1e-5;
      const double x = flat[i].item<double>();
      flat[i] = x + kStep;
      const double above = f().item<double>();
      flat[i] = x - kStep;
      const double below = f().item<double>();
      flat[i] = x;
      const double numeric = (above - below) / (2 * kStep),
                   ours = gradients[l].reshape({-1})[i].item<double>();
      EXPECT_NEAR(ours, numeric, 1e-6 * std::max(1.0, std::abs(numeric))) << "leaf " << l << " place " << i;
    }
  }
}

inline torch::Tensor random_leaf(std::vector<int64_t> shape, double scale = 1) {
  return (torch::randn(shape, torch::kFloat64) * scale).requires_grad_();
}

}  // namespace forebay::train::testing
