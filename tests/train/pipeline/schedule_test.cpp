// The order of work, for every stage of pipelines of many shapes.
#include "train/pipeline/schedule.h"

#include <vector>

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

TEST(Schedule, IsNeverStuckAndHasTheBubbleOfItsFormula) {
  for (int64_t n_stages = 1; n_stages <= 8; ++n_stages)
    for (size_t n = 1; n <= 20; ++n) {
      const std::vector<StageSeconds> equal(static_cast<size_t>(n_stages), {1, 2});
      const double time = predicted_step_s(equal, n);
      EXPECT_EQ(time, 3 * static_cast<double>(static_cast<int64_t>(n) + n_stages - 1))
          << n_stages << " stages, " << n;
      EXPECT_NEAR(1 - 3 * static_cast<double>(n) / time, bubble_share(n_stages, n), 1e-12);
    }
}

TEST(Schedule, TheSlowestStageSetsThePace) {
  const std::vector<StageSeconds> stages = {{1, 2}, {2, 5}, {1, 1}};
  EXPECT_EQ(predicted_step_s(stages, 1), 12);
  EXPECT_LE(predicted_step_s(stages, 9), 8 * 7 + 12);
  EXPECT_GE(predicted_step_s(stages, 9),
            9 * 7 + 1 + 2);  // before its first and behind its last piece of work
}

TEST(Schedule, MessagesTakeTheirTime) {
  const std::vector<StageSeconds> two = {{1, 2}, {1, 2}};
  EXPECT_EQ(predicted_step_s(two, 1, {.busy = 3, .latency = 10}, {.busy = 5, .latency = 20}), 6 + 13 + 25);
  // A link slower than the stages sets the pace instead: each way has all the messages one behind the other.
  EXPECT_GE(predicted_step_s(two, 10, {.busy = 50}, {}), 10 * 50 + 6);
  EXPECT_EQ(predicted_step_s(std::vector<StageSeconds>{{1, 2}}, 10, {.busy = 50, .latency = 50}), 30);
}

}  // namespace
}  // namespace forebay::train
