// The gradient's way back through a basis and a residual.
#include <gtest/gtest.h>

#include "support.h"
#include "train/wire/basis.h"

namespace forebay::train {
namespace {

using testing::codec_of;
using testing::default_codec;
using testing::gaussian;

/// The codec's function in f64 without bf16 in between, gamma given.
torch::Tensor smooth_view(const torch::Tensor& x, const torch::Tensor& q, const Subset& subset,
                          const torch::Tensor& gamma) {
  const torch::Tensor c = x.matmul(q);
  const torch::Tensor e = x - c.matmul(q.t());
  return c.matmul(q.t()) + subset.spread(subset.take(e)) * gamma;
}

TEST(Frlr, TheGradientIsThatOfTheViewWithGammaHeld) {
  constexpr int64_t kWidth = 96;
  for (const std::string name : {"frlr", "frlr-unbiased"})
    for (const MaskScope scope : {MaskScope::kStep, MaskScope::kToken}) {
      const CodecOptions options{.name = name, .scope = scope, .rank = 6, .k_residual = 10};
      const std::unique_ptr<Codec> codec = codec_of(options, kWidth);
      const WireKey key{.seed = 2, .step = 3};
      const torch::Tensor x = gaussian(5, kWidth);
      const torch::Tensor g = gaussian(5, kWidth, 2);
      torch::Tensor saved;
      codec->view(x, key, &saved);
      const torch::Tensor gradient = codec->gradient_view(g, key, saved).to(torch::kDouble);

      const torch::Tensor q = codec->basis()->active(0, torch::kCPU).to(torch::kDouble);
      const Subset subset = MaskSource(10, scope).subset(key, 5, kWidth, torch::kCPU);
      const torch::Tensor gamma =
          name == "frlr" ? saved.to(torch::kDouble) : torch::full({5, 1}, 9.6, torch::kDouble);
      const torch::Tensor x64 = x.to(torch::kDouble);
      const torch::Tensor g64 = g.to(torch::kDouble);
      constexpr double kStep = 1e-4;
      for (const int64_t j : {0, 17, 95}) {
        torch::Tensor moved = torch::zeros({5, kWidth}, torch::kDouble);
        moved.select(1, j).fill_(kStep);
        const torch::Tensor slope =
            (smooth_view(x64 + moved, q, subset, gamma) - smooth_view(x64 - moved, q, subset, gamma)) /
            (2 * kStep);
        const torch::Tensor wanted = (slope * g64).sum(1);
        // bf16 on the wire: 2^-9 of what is sent, times gamma.
        const double allowed = 0x1p-8 * (1 + gamma.max().item<double>()) * 3;
        EXPECT_LT((gradient.select(1, j) - wanted).abs().max().item<double>(), allowed) << name << j;
      }
      // And all of it at once, where nothing is rounded away by chance: in energy.
      torch::Tensor leaf = x64.clone().requires_grad_(true);
      (smooth_view(leaf, q, subset, gamma) * g64).sum().backward();
      EXPECT_LT(((gradient - leaf.grad()).square().sum() / leaf.grad().square().sum()).item<double>(), 1e-5)
          << name;
    }
}

TEST(Frlr, TheViewIsTheFormulaUpToBf16) {
  const CodecOptions options{.name = "frlr", .rank = 6, .k_residual = 10};
  const std::unique_ptr<Codec> codec = codec_of(options, 96);
  const torch::Tensor x = gaussian(5, 96);
  torch::Tensor saved;
  const torch::Tensor seen = codec->view(x, {}, &saved);
  const torch::Tensor q = codec->basis()->active(0, torch::kCPU);
  const Subset subset = MaskSource(10, MaskScope::kStep).subset({}, 5, 96, torch::kCPU);
  const torch::Tensor e = x - x.matmul(q).matmul(q.t());
  const torch::Tensor gamma = e.norm(2, {1}, true) / subset.take(e).norm(2, {1}, true);
  EXPECT_LT((saved / gamma - 1).abs().max().item<double>(), 0.01);
  EXPECT_LT((seen - smooth_view(x, q, subset, gamma)).square().sum().item<double>(),
            1e-4 * x.square().sum().item<double>());
  // The norm of the residual is matched.
  const torch::Tensor rest = seen - x.matmul(q).matmul(q.t());
  EXPECT_LT((rest.norm(2, {1}, true) / e.norm(2, {1}, true) - 1).abs().max().item<double>(), 0.01);
}

TEST(Frlr, GammaIsCapped) {
  const CodecOptions options{.name = "frlr", .rank = 6, .k_residual = 10, .gamma_max = 1.5};
  torch::Tensor saved;
  codec_of(options, 96)->view(gaussian(5, 96), {}, &saved);
  EXPECT_TRUE((saved == 1.5).all().item<bool>());
}

TEST(Frlr, TheWayBackNeedsOnlyWhatTheWireCarries) {
  // r + k' numbers per row, whatever the width, and the gamma of the way there.
  const std::unique_ptr<Codec> codec = default_codec("frlr", 1536);
  torch::Tensor saved;
  codec->encode(gaussian(3, 1536), {}, &saved);
  EXPECT_EQ(saved.numel(), 3);
  EXPECT_EQ(codec->encode_gradient(gaussian(3, 1536), {}, saved).bytes.size(), 3u * 2 * (48 + 28));
}

TEST(Frlr, AGradientWithoutItsForwardPassAborts) {
  const std::unique_ptr<Codec> codec = default_codec("frlr", 64);
  EXPECT_DEATH(codec->gradient_view(gaussian(3, 64), {}, {}), "without the gamma of its forward pass");
}

}  // namespace
}  // namespace forebay::train
