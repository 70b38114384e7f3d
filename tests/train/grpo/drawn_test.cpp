// What a step drew, as other processes of the run receive it.
#include <gtest/gtest.h>

#include "train/grpo/drawer.h"

namespace forebay::train {
namespace {

Drawn some() {
  Drawn d;
  d.prompts = {{1, 2, 3}, {}};
  d.n_answers = 2;
  d.rollouts = {{{4, 5}, {-0.5f, -1.25f}, true}, {{}, {}, false}, {{6}, {-2.0f}, false}, {{7}, {0.0f}, true}};
  d.rewards = {1.0, std::nullopt, 0.0, 0.25};
  return d;
}

TEST(DrawnMessage, ComesBackWhole) {
  const Drawn d = some();
  const Result<Drawn> back = Drawn::from_bytes(d.to_bytes());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->prompts, d.prompts);
  EXPECT_EQ(back->n_answers, d.n_answers);
  EXPECT_EQ(back->rewards, d.rewards);
  ASSERT_EQ(back->rollouts.size(), d.rollouts.size());
  for (size_t i = 0; i < d.rollouts.size(); ++i) {
    EXPECT_EQ(back->rollouts[i].tokens, d.rollouts[i].tokens);
    EXPECT_EQ(back->rollouts[i].log_probs, d.rollouts[i].log_probs);
    EXPECT_EQ(back->rollouts[i].ended, d.rollouts[i].ended);
  }
}

TEST(DrawnMessage, CutOrLengthenedItIsRefused) {
  const Bytes whole = some().to_bytes();
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(Drawn::from_bytes(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)))) << n;
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(Drawn::from_bytes(longer));
}

// Any bit may be another: what is accepted still fits together, and a count asks for no memory that the
// message lacks.
TEST(DrawnMessage, WithAnyBitChangedItFitsTogetherOrIsRefused) {
  const Bytes whole = some().to_bytes();
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes changed = whole;
    changed[bit / 8] = static_cast<uint8_t>(changed[bit / 8] ^ (1u << (bit % 8)));
    const Result<Drawn> back = Drawn::from_bytes(changed);
    if (!back) continue;
    ASSERT_GE(back->n_answers, 0);
    ASSERT_EQ(back->rollouts.size(), back->prompts.size() * static_cast<size_t>(back->n_answers)) << bit;
    ASSERT_EQ(back->rewards.size(), back->rollouts.size());
    for (const Rollout& rollout : back->rollouts)
      ASSERT_EQ(rollout.tokens.size(), rollout.log_probs.size()) << bit;
  }
}

}  // namespace
}  // namespace forebay::train
