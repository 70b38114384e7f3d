// Which places to go back to are kept when not all can be.
#include "session/snapshot_pool.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;

class Pools : public ::testing::Test {
 protected:
  Pools() : model_(testing::converted_vectors("qwen3next")), state_(model_.state(1024)) {}

  void run_to(int64_t n_cells) {
    while (state_.n_cells() < n_cells) {
      const std::vector<int32_t> tokens(std::min<int64_t>(256, n_cells - state_.n_cells()), 7);
      const Span span{&state_, tokens, LogitRows::kNone};
      ASSERT_OK(model_.model->forward({&span, 1}));
    }
  }
  std::vector<int64_t> cells(const SnapshotPool& pool) {
    std::vector<int64_t> out;
    for (const Place& p : pool.places()) out.push_back(p.n_cells());
    return out;
  }
  uint64_t one() const { return state_.snapshot().bytes(); }

  LoadedModel model_;
  SequenceState state_;
  MemoryBudget budget_;
};

TEST_F(Pools, FindTheNearestAndForgetWhatWasCut) {
  SnapshotPool pool(100 * one(), budget_);
  EXPECT_EQ(pool.nearest(1000), nullptr);
  for (int64_t n : {10, 20, 40}) {
    run_to(n);
    EXPECT_TRUE(pool.add(state_, {}));
  }
  EXPECT_EQ(pool.nearest(9), nullptr);
  EXPECT_EQ(pool.nearest(10)->n_cells(), 10);
  EXPECT_EQ(pool.nearest(39)->n_cells(), 20);
  EXPECT_EQ(pool.nearest(1000)->n_cells(), 40);
  EXPECT_TRUE(pool.add(state_, {1, 2}));
  EXPECT_EQ(cells(pool), (std::vector<int64_t>{10, 20, 40}));
  EXPECT_EQ(pool.nearest(40)->logits.size(), 2u);
  pool.cut(20);
  EXPECT_EQ(cells(pool), (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(budget_.used_bytes(), pool.bytes());
  pool.clear();
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(Pools, KeepTheBudgetAndThinOutAwayFromTheEnd) {
  SnapshotPool pool(4 * one(), budget_);
  for (int64_t n = 50; n <= 1000; n += 50) {
    run_to(n);
    EXPECT_TRUE(pool.add(state_, {}));
    EXPECT_LE(pool.bytes(), 4 * one());
    EXPECT_EQ(pool.places().back().n_cells(), n);
  }
  const std::vector<int64_t> kept = cells(pool);
  ASSERT_EQ(kept.size(), 4u);
  // Gaps do not grow towards the end.
  EXPECT_GE(kept[0], kept[1] - kept[0]);
  EXPECT_GE(kept[1] - kept[0], kept[3] - kept[2]);
}

TEST_F(Pools, TakeNoMoreThanTheMemoryThereIs) {
  MemoryBudget small(2 * one() + one() / 2);
  SnapshotPool pool(100 * one(), small);
  for (int64_t n : {10, 20, 40}) {
    run_to(n);
    EXPECT_TRUE(pool.add(state_, {}));
  }
  EXPECT_EQ(pool.places().size(), 2u);
  SnapshotPool none(one() - 1, budget_);
  EXPECT_FALSE(none.add(state_, {}));
}

}  // namespace
}  // namespace forebay
