// A sampler's copy of the weights, refreshed in place.
#include "train/anchor/delta_tensors.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay::train {
namespace {

TEST(DeltaTensors, RefreshesF32AndBf16InPlace) {
  torch::manual_seed(5);
  NamedTensors trainer = {{"a", torch::randn({20, 30})}, {"b", torch::randn({40})}};
  NamedTensors narrow, wide;
  for (const auto& [name, tensor] : trainer) {
    narrow[name] = tensor.to(torch::kBFloat16);
    wide[name] = tensor.clone();
  }
  // A tensor whose memory is not in order.
  wide["a"] = wide["a"].t().contiguous().t();
  const Bf16Tensors before = bf16_of(trainer).value();
  for (auto& [name, tensor] : trainer) tensor.add_(torch::randn_like(tensor) * 3e-3);
  const Bf16Tensors after = bf16_of(trainer).value();
  const Delta delta = parse_delta(make_delta(before, after, 3, 4).value(), "d").value();
  EXPECT_GT(delta.n_changed(), 0u);
  EXPECT_LT(delta.n_changed(), delta.n_elements());

  const void* place = narrow["b"].data_ptr();
  const torch::Tensor old = wide["b"].clone();
  ASSERT_OK(apply_delta(delta, 3, narrow));
  ASSERT_OK(apply_delta(delta, 3, wide));
  EXPECT_EQ(narrow["b"].data_ptr(), place);
  EXPECT_EQ(bf16_of(narrow).value(), after);
  EXPECT_EQ(bf16_of(wide).value(), after);
  const torch::Tensor same = old.to(torch::kBFloat16).eq(narrow["b"]);
  EXPECT_TRUE(torch::equal(wide["b"].masked_select(same), old.masked_select(same)));

  EXPECT_TRUE(fails_with(apply_delta(delta, 3, wide), Code::kInvalidArgument, "another base"));
  EXPECT_TRUE(fails_with(bf16_of({{"x", torch::zeros({2}, torch::kInt64)}}), Code::kUnsupported, "x"));
}

}  // namespace
}  // namespace forebay::train
