// The safe mask: its definition on matrices whose low-rank part is known, its size, its repeatability.
#include "train/anchor/safe_mask.h"

#include <gtest/gtest.h>

namespace forebay::train {
namespace {

TEST(SafeMask, SparesTheLargeEntriesOfTheLowRankPart) {
  // Rank one, with four large entries in a corner, and small noise.
  torch::manual_seed(1);
  const torch::Tensor u = torch::full({10, 1}, 0.1f), v = torch::full({1, 10}, 0.1f);
  u[0][0] = u[1][0] = v[0][0] = v[0][1] = 3;
  const torch::Tensor w = torch::matmul(u, v) + torch::randn({10, 10}) * 1e-4;
  const torch::Tensor mask = safe_mask(w, {.rank = 0.1, .alpha = 0.04});
  torch::Tensor wanted = torch::ones({10, 10}, torch::kBool);
  wanted.slice(0, 0, 2).slice(1, 0, 2) = false;
  EXPECT_TRUE(torch::equal(mask, wanted));
  EXPECT_TRUE(torch::equal(principal_mask(w, {.rank = 0.1, .alpha = 0.04}), wanted.logical_not()));
}

TEST(SafeMask, SmallWeightsAreSafeWhateverTheirDirection) {
  torch::manual_seed(2);
  const torch::Tensor w = torch::randn({16, 24});
  const torch::Tensor mask = safe_mask(w, {.rank = 0.1, .alpha = 0.3});
  const torch::Tensor sorted = std::get<0>(w.abs().flatten().sort());
  EXPECT_TRUE(mask.masked_select(w.abs() < sorted[115].item<float>()).all().item<bool>());
}

TEST(SafeMask, IsAboutSeventyPercentAndTheSameEveryTime) {
  torch::manual_seed(3);
  const std::vector<torch::Tensor> base = {torch::randn({64, 48}), torch::randn({5}),
                                           torch::randn({3, 20, 30})};
  const SafeMasks first = safe_masks(base, {}), second = safe_masks(base, {});
  EXPECT_EQ(first.hash, second.hash);
  for (size_t i = 0; i < base.size(); ++i) EXPECT_TRUE(torch::equal(first.masks[i], second.masks[i]));
  EXPECT_TRUE(first.masks[1].all().item<bool>());
  const double share = static_cast<double>(first.n_safe) / static_cast<double>(first.n_all);
  EXPECT_GT(share, 0.70);
  EXPECT_LT(share, 0.85);
  // A stack is its matrices.
  EXPECT_TRUE(torch::equal(first.masks[2][1], safe_mask(base[2][1], {})));
  // Another base, another hash.
  std::vector<torch::Tensor> other = {base[0].clone(), base[1], base[2]};
  other[0].neg_();
  other[0][0][0] = 100;
  EXPECT_NE(safe_masks(other, {}).hash, first.hash);
}

TEST(SafeMask, TiesGoToTheLowerIndex) {
  const torch::Tensor mask = safe_mask(torch::ones({4, 5}), {.rank = 0.1, .alpha = 0.3});
  // 6 of 20 equal entries count as low. The principal ones differ by rounding only, so that no more is said.
  EXPECT_TRUE(mask.flatten().slice(0, 0, 6).all().item<bool>());
}

}  // namespace
}  // namespace forebay::train
