// The sign circuit against its definition: average, signs, who is written and when.
#include "train/anchor/sign_anchor.h"

#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay::train {
namespace {

std::vector<torch::Tensor> random_tensors(uint64_t seed) {
  torch::manual_seed(seed);
  return {torch::randn({7, 5}), torch::randn({11}), torch::randn({2, 3, 3})};
}

std::vector<torch::Tensor> clones(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> out;
  for (const torch::Tensor& tensor : tensors) out.push_back(tensor.clone());
  return out;
}

bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

TEST(SignAnchor, FollowsItsDefinition) {
  std::vector<torch::Tensor> parameters = random_tensors(1);
  const std::vector<torch::Tensor> start = clones(parameters);
  SignAnchor anchor = SignAnchor::make(parameters, {}, {.mu = 0.5, .every = 3, .step = 0.25}).value();
  std::vector<torch::Tensor> average;
  for (const torch::Tensor& p : parameters) average.push_back(torch::zeros_like(p));
  for (int tick = 1; tick <= 3; ++tick) {
    const std::vector<torch::Tensor> gradients = random_tensors(10 + tick);
    for (size_t i = 0; i < average.size(); ++i) average[i] = average[i] * 0.5 + gradients[i] * 0.5;
    ASSERT_OK(anchor.tick(gradients));
    EXPECT_EQ(anchor.due(), tick == 3);
  }
  const std::vector<uint8_t> payload = anchor.signs();
  EXPECT_EQ(payload.size(), (35u + 11 + 18 + 7) / 8);
  ASSERT_OK(anchor.fire(payload));
  EXPECT_FALSE(anchor.due());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const torch::Tensor wanted = start[i] - 0.25 * torch::where(average[i] >= 0, 1.0f, -1.0f);
    EXPECT_TRUE(torch::equal(parameters[i], wanted)) << i;
  }
}

TEST(SignAnchor, SignOfZeroIsPlus) {
  std::vector<torch::Tensor> parameters = {torch::zeros({3})};
  SignAnchor anchor = SignAnchor::make(parameters, {}, {.mu = 0, .every = 1, .step = 1}).value();
  ASSERT_OK(anchor.tick(std::vector<torch::Tensor>{torch::tensor({0.0f, -0.0f, -1e-30f})}));
  EXPECT_EQ(anchor.signs(), std::vector<uint8_t>{0b011});
}

TEST(SignAnchor, ReceiversAreBitIdenticalAndMasksHold) {
  const std::vector<torch::Tensor> base = random_tensors(3);
  std::vector<torch::Tensor> masks;
  for (const torch::Tensor& p : base) masks.push_back(torch::rand_like(p) < 0.7);
  masks[1] = torch::Tensor();
  int64_t n_masked = 11 + masks[0].sum().item<int64_t>() + masks[2].sum().item<int64_t>();
  std::vector<torch::Tensor> at_owner = clones(base), at_receiver = clones(base);
  at_owner[0][0][0] = at_receiver[0][0][0] = -0.0f;
  const AnchorOptions options{.mu = 0.9, .every = 2, .step = 1e-3};
  SignAnchor owner = SignAnchor::make(at_owner, masks, options).value();
  SignAnchor receiver = SignAnchor::make(at_receiver, masks, options).value();
  EXPECT_EQ(owner.n_signs(), n_masked);
  for (int tick = 1; tick <= 7; ++tick) {
    ASSERT_OK(owner.tick(random_tensors(20 + tick)));
    receiver.tick();
    ASSERT_EQ(owner.due(), receiver.due());
    if (!owner.due()) continue;
    const std::vector<uint8_t> payload = owner.signs();
    EXPECT_EQ(static_cast<int64_t>(payload.size()), (n_masked + 7) / 8);
    ASSERT_OK(owner.fire(payload));
    ASSERT_OK(receiver.fire(payload));
  }
  EXPECT_EQ(owner.counts().fires, 3);
  EXPECT_EQ(owner.counts().payload_bytes, 3 * ((n_masked + 7) / 8));
  for (size_t i = 0; i < base.size(); ++i) {
    EXPECT_TRUE(same_bits(at_owner[i], at_receiver[i])) << i;
    if (!masks[i].defined()) continue;
    const torch::Tensor outside = masks[i].logical_not();
    torch::Tensor first = base[i].clone();
    if (i == 0) first[0][0] = -0.0f;
    EXPECT_TRUE(same_bits(at_owner[i].masked_select(outside), first.masked_select(outside))) << i;
  }
}

TEST(SignAnchor, FiresAreFloorOfTicksOverCadence) {
  for (const int64_t every : {1, 3, 20}) {
    SignAnchor anchor = SignAnchor::make({torch::zeros({9})}, {}, {.every = every}).value();
    for (int64_t tick = 1; tick <= 61; ++tick) {
      ASSERT_OK(anchor.tick(std::vector<torch::Tensor>{torch::ones({9})}));
      if (anchor.due()) {
        ASSERT_OK(anchor.fire(anchor.signs()));
      }
      EXPECT_EQ(anchor.counts().fires, tick / every);
    }
  }
}

TEST(SignAnchor, NothingIsWrittenOutsideAFire) {
  std::vector<torch::Tensor> parameters = random_tensors(4);
  const std::vector<torch::Tensor> start = clones(parameters);
  SignAnchor anchor = SignAnchor::make(parameters, {}, {.every = 2}).value();
  EXPECT_TRUE(fails_with(anchor.fire(anchor.signs()), Code::kInvalidArgument, "tick 0"));
  ASSERT_OK(anchor.tick(random_tensors(5)));
  EXPECT_TRUE(fails_with(anchor.fire(anchor.signs()), Code::kInvalidArgument, "tick 1"));
  ASSERT_OK(anchor.tick(random_tensors(6)));
  std::vector<uint8_t> payload = anchor.signs();
  EXPECT_TRUE(fails_with(anchor.fire(std::span(payload).first(3)), Code::kInvalidArgument, "3 bytes"));
  std::vector<torch::Tensor> odd = {torch::zeros({9})};
  SignAnchor other = SignAnchor::make(odd, {}, {.every = 1}).value();
  other.tick();
  EXPECT_TRUE(
      fails_with(other.fire(std::vector<uint8_t>{0xff, 0xff}), Code::kInvalidArgument, "bits behind"));
  EXPECT_EQ(anchor.counts().refused_writes, 3);
  for (size_t i = 0; i < start.size(); ++i) EXPECT_TRUE(same_bits(parameters[i], start[i]));
  ASSERT_OK(anchor.fire(payload));
  EXPECT_TRUE(fails_with(anchor.fire(payload), Code::kInvalidArgument, "no fire is due"));
}

TEST(SignAnchor, GradientsThatAreNotFiniteAreRefused) {
  SignAnchor anchor = SignAnchor::make({torch::zeros({2})}, {}, {.mu = 0, .every = 1}).value();
  const std::vector<torch::Tensor> bad = {torch::tensor({1.0f, std::nanf("")})};
  EXPECT_TRUE(fails_with(anchor.tick(bad), Code::kInvalidArgument, "not finite"));
  EXPECT_EQ(anchor.counts().ticks, 0);
  EXPECT_TRUE(fails_with(anchor.tick(std::vector<torch::Tensor>{}), Code::kInvalidArgument, "0 gradients"));
}

TEST(SignAnchor, ResumeIsUninterrupted) {
  const std::vector<torch::Tensor> base = random_tensors(7);
  const AnchorOptions options{.mu = 0.9, .every = 4, .step = 1e-2};
  const auto steps = [](SignAnchor& anchor, int from, int to) {
    for (int tick = from; tick < to; ++tick) {
      ASSERT_OK(anchor.tick(random_tensors(100 + tick)));
      if (anchor.due()) {
        ASSERT_OK(anchor.fire(anchor.signs()));
      }
    }
  };
  std::vector<torch::Tensor> whole = clones(base);
  SignAnchor straight = SignAnchor::make(whole, {}, options).value();
  steps(straight, 0, 20);

  std::vector<torch::Tensor> parts = clones(base);
  std::stringstream saved;
  {
    SignAnchor first = SignAnchor::make(parts, {}, options).value();
    steps(first, 0, 10);
    torch::serialize::OutputArchive archive;
    first.save(archive);
    archive.save_to(saved);
  }
  SignAnchor second = SignAnchor::make(parts, {}, options).value();
  torch::serialize::InputArchive archive;
  archive.load_from(saved);
  ASSERT_OK(second.load(archive));
  steps(second, 10, 20);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(same_bits(whole[i], parts[i]));
  EXPECT_EQ(second.counts().fires, straight.counts().fires);
  EXPECT_EQ(second.signs(), straight.signs());

  SignAnchor other = SignAnchor::make({torch::zeros({2})}, {}, options).value();
  EXPECT_TRUE(fails_with(other.load(archive), Code::kCorrupt, "3 parameters"));
}

}  // namespace
}  // namespace forebay::train
