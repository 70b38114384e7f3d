// The order of work, for every stage of pipelines of many shapes.
#include "train/pipeline/schedule.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

namespace forebay::train {
namespace {

using Kind = StageWork::Kind;

TEST(Schedule, EachMicroBatchOnceInOrderAndFewInFlight) {
  for (int64_t n_stages = 1; n_stages <= 8; ++n_stages)
    for (size_t n = 0; n <= 20; ++n)
      for (int64_t stage = 0; stage < n_stages; ++stage) {
        size_t n_forward = 0, n_backward = 0;
        for (const StageWork& work : one_forward_one_backward(stage, n_stages, n)) {
          if (work.kind == Kind::kForward) {
            EXPECT_EQ(work.micro_batch, n_forward++);
          } else {
            EXPECT_EQ(work.micro_batch, n_backward++);
          }
          ASSERT_LE(n_backward, n_forward);
          ASSERT_LE(n_forward - n_backward, static_cast<size_t>(n_stages - stage));
        }
        EXPECT_EQ(n_forward, n);
        EXPECT_EQ(n_backward, n);
      }
}

/// When all stages are done, if every piece of work takes one unit and messages none; negative: stuck.
int64_t makespan(int64_t n_stages, size_t n) {
  std::vector<std::vector<StageWork>> orders;
  for (int64_t stage = 0; stage < n_stages; ++stage)
    orders.push_back(one_forward_one_backward(stage, n_stages, n));
  std::vector<size_t> next(orders.size(), 0);
  std::vector<int64_t> free_at(orders.size(), 0);
  std::map<std::pair<int, std::pair<int64_t, size_t>>, int64_t> done;  // kind, stage, micro-batch
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t stage = 0; stage < n_stages; ++stage) {
      const auto index = static_cast<size_t>(stage);
      if (next[index] == orders[index].size()) continue;
      const StageWork work = orders[index][next[index]];
      int64_t ready = 0;
      const bool is_forward = work.kind == Kind::kForward;
      const int64_t before = is_forward ? stage - 1 : stage + 1;
      if (before >= 0 && before < n_stages) {
        const auto found = done.find({is_forward ? 0 : 1, {before, work.micro_batch}});
        if (found == done.end()) continue;
        ready = found->second;
      }
      free_at[index] = std::max(free_at[index], ready) + 1;
      done[{is_forward ? 0 : 1, {stage, work.micro_batch}}] = free_at[index];
      ++next[index];
      moved = true;
    }
  }
  for (size_t stage = 0; stage < orders.size(); ++stage)
    if (next[stage] != orders[stage].size()) return -1;
  return *std::max_element(free_at.begin(), free_at.end());
}

TEST(Schedule, IsNeverStuckAndHasTheBubbleOfItsFormula) {
  for (int64_t n_stages = 1; n_stages <= 8; ++n_stages)
    for (size_t n = 1; n <= 20; ++n) {
      const int64_t time = makespan(n_stages, n);
      EXPECT_EQ(time, 2 * (static_cast<int64_t>(n) + n_stages - 1)) << n_stages << " stages, " << n;
      const double idle = 1 - static_cast<double>(2 * n) / static_cast<double>(time);
      EXPECT_NEAR(idle, bubble_share(n_stages, n), 1e-12);
    }
}

}  // namespace
}  // namespace forebay::train
