// When runs are cut short.
#include "lab/kill.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay::lab {
namespace {

std::optional<Kill> checked(std::string_view trigger, const std::vector<std::string>& lines,
                            double idle_s = 0) {
  Series series;
  for (const std::string& line : lines) EXPECT_TRUE(series.add_line(line));
  return check(trigger_named(trigger).value(), series, std::chrono::duration<double>(idle_s));
}

TEST(Kill, FirstStepBeyondTheLimit) {
  const std::optional<Kill> kill = checked(
      "study.gap", {"{\"step\":12,\"gap\":14.3}", "{\"step\":13,\"gap\":14.31}", "{\"step\":14,\"gap\":99}"});
  ASSERT_TRUE(kill);
  EXPECT_EQ(kill->reason, KillReason::kGapHigh);
  EXPECT_EQ(kill->detail, "gap 14.31 at step 13, limit 14.3");
  // The first ten steps are a transient.
  EXPECT_FALSE(checked("study.gap", {"{\"step\":2,\"gap\":20}", "{\"step\":10,\"gap\":20}"}));
}

TEST(Kill, EachLooksAtItsOwn) {
  EXPECT_TRUE(checked("not-finite", {"{\"step\":1,\"loss\":null}"}));
  EXPECT_FALSE(checked("not-finite", {"{\"step\":1,\"loss\":1,\"ess\":null}"}));
  EXPECT_TRUE(checked("ratio", {"{\"step\":1,\"ratio_max_dev\":1e-7}"}));
  EXPECT_FALSE(checked("ratio", {"{\"step\":1,\"ratio_max_dev\":0}"}));
  EXPECT_TRUE(checked("dense-kl", {"{\"step\":20,\"kl_dense\":2.1}"}));
  EXPECT_TRUE(checked("study.rn@60", {"{\"step\":60}"}));
  EXPECT_FALSE(checked("study.rn@60", {"{\"step\":59}"}));
  EXPECT_TRUE(checked("study.val@300",
                      {"{\"step\":290,\"val_accuracy\":0.9}", "{\"step\":310,\"val_accuracy\":0.6}"}));
  EXPECT_FALSE(checked("study.val@300",
                       {"{\"step\":290,\"val_accuracy\":0.1}", "{\"step\":310,\"val_accuracy\":0.7}"}));
  EXPECT_TRUE(checked("stalled", {"{\"step\":1}"}, 901));
  EXPECT_FALSE(checked("stalled", {"{\"step\":1}"}, 899));
  // No trigger reads what a codec sees.
  for (const KillTrigger& trigger : all_triggers())
    EXPECT_FALSE(check(
        trigger,
        [] {
          Series series;
          series.add_line("{\"step\":30,\"kl_view\":1e9,\"entropy\":1e9}");
          return series;
        }(),
        std::chrono::seconds(0)))
        << trigger.name;
  EXPECT_TRUE(fails_with(trigger_named("bored"), Code::kNotFound, "bored", "not-finite"));
}

}  // namespace
}  // namespace forebay::lab
