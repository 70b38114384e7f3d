// The grid: which configurations, in which order, with which gap.
#include "replay/replay.h"

#include <gtest/gtest.h>

#include "logs.h"
#include "replay/plot.h"

namespace forebay {
namespace {

using testing::LogBuilder;
using testing::synthetic_log;

TEST(ReplayGrid, MultipliesOnlyWhatAppliesToAPolicy) {
  ReplayGrid grid;
  grid.policies = {EvictionPolicy::kLru, EvictionPolicy::kDecay, std::nullopt};
  grid.budgets = {1, 2};
  grid.half_lives = {10, 20, 30};
  grid.biases = {RouteBias{}, RouteBias{0.5f, 3, 16}};
  std::map<std::string, int> n;
  for (const ReplayConfig& config : grid.configs()) {
    ++n[std::string(name_of(config.policy))];
    EXPECT_TRUE(config.policy || config.bias.lambda == 0);
  }
  EXPECT_EQ(n, (std::map<std::string, int>{{"lru", 4}, {"decay", 12}, {"belady", 2}}));
}

TEST(ReplayPolicyNames, GoThereAndBack) {
  for (const char* name : {"lru", "decay", "lfu", "ema", "near-pick", "inverse", "belady"})
    EXPECT_EQ(name_of(replay_policy_from_name(name).value()), name);
  EXPECT_TRUE(
      fails_with(replay_policy_from_name("random"), Code::kInvalidArgument, "'random'", "lru", "belady"));
}

TEST(ParseSlots, SharesNumbersAndBytes) {
  LogBuilder builder(3, 10, 1, {1000, 3000, 0});
  const RouteLog log = builder.load();
  EXPECT_EQ(log.total_slot_bytes(), 40'000u);
  EXPECT_EQ(parse_slots(log, "25%").value(), 10'000u);
  EXPECT_EQ(parse_slots(log, "0.5%").value(), 200u);
  EXPECT_EQ(parse_slots(log, "5").value(), 10'000u) << "of the mean size, 2000 bytes";
  EXPECT_EQ(parse_slots(log, "20").value(), 40'000u);
  EXPECT_EQ(parse_slots(log, "8K").value(), 8192u);
  EXPECT_TRUE(fails_with(parse_slots(log, "21"), Code::kInvalidArgument, "21"));
  EXPECT_TRUE(fails_with(parse_slots(log, "101%"), Code::kInvalidArgument, "101"));
  EXPECT_TRUE(fails_with(parse_slots(log, "%"), Code::kInvalidArgument));
  EXPECT_TRUE(fails_with(parse_slots(log, ""), Code::kInvalidArgument));
  EXPECT_TRUE(fails_with(parse_slots(log, "many"), Code::kInvalidArgument, "many"));
}

TEST(Replay, ThreadsChangeNothingAndTheGapIsToMin) {
  const RouteLog log = synthetic_log({}, 150, 5);
  ReplayGrid grid;
  grid.policies = {EvictionPolicy::kDecay, EvictionPolicy::kEma, EvictionPolicy::kNearPick, std::nullopt};
  grid.budgets = {3000, 6000, 12'800};
  grid.biases = {RouteBias{}, RouteBias{0.6f, 1, 16}};
  std::vector<std::vector<uint64_t>> misses;
  for (const int n_threads : {1, 3}) {
    ThreadPool pool(n_threads);
    size_t last = 0, all = 0;
    const Result<std::vector<ReplayRow>> rows =
        replay(log, grid, {.warm_up_tokens = 30, .phases = ReplayPhases::kAll}, pool,
               [&](size_t done, size_t of) {
                 EXPECT_GE(done, last);
                 last = done;
                 all = of;
               },
               {});
    ASSERT_OK(rows);
    ASSERT_EQ(rows->size(), grid.configs().size());
    EXPECT_EQ(all, rows->size() + 3);
    misses.emplace_back();
    for (const ReplayRow& row : *rows) {
      misses.back().push_back(row.result.counted.n_misses);
      const ReplayConfig& config = row.result.config;
      if (config.bias.lambda == 0) {
        EXPECT_GE(row.gap_to_min(), 0);
      }
      if (!config.policy) {
        EXPECT_EQ(row.gap_to_min(), 0);
      }
      EXPECT_EQ(row.result.counted.n_tokens, 125u);
      EXPECT_NEAR(row.misses_per_token() * 125, static_cast<double>(row.result.counted.n_misses), 1e-6);
      EXPECT_NEAR(row.bytes_per_token(), 100 * row.misses_per_token(), 1e-6);
    }
  }
  EXPECT_EQ(misses[0], misses[1]);
}

TEST(Replay, StopsWhenAskedAndRefusesSmallBudgets) {
  const RouteLog log = synthetic_log({}, 20);
  ReplayGrid grid;
  grid.policies = {EvictionPolicy::kLru};
  grid.budgets = {100};
  ThreadPool pool(1);
  EXPECT_TRUE(fails_with(replay(log, grid, {}, pool, nullptr, {}), Code::kInvalidArgument, "100 bytes"));
  grid.budgets = {1000};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(fails_with(replay(log, grid, {}, pool, nullptr, stop.get_token()), Code::kCancelled));
}

TEST(Plot, HasALinePerPolicyAndQuotesNames) {
  RouteLog log;
  log.header = {"it's a \"model\"\n", 10, 1, {100}, {100}};
  std::vector<ReplayRow> rows(4);
  for (ReplayRow& row : rows) row.result.counted.n_tokens = 10;
  rows[0].result.config = {EvictionPolicy::kLru, 500, 2000, {}};
  rows[1].result.config = {EvictionPolicy::kLru, 250, 2000, {}};
  rows[2].result.config = {EvictionPolicy::kLru, 250, 2000, {0.5f, 3, 16}};
  rows[3].result.config = {std::nullopt, 250, 2000, {}};
  rows[0].result.counted.n_misses = 20;
  rows[1].result.counted.n_misses = 45;
  rows[2].result.counted.n_misses = 15;
  const std::string script = plot_script(log, rows, "a'b.png");
  EXPECT_NE(script.find("set output 'a''b.png'"), std::string::npos) << script;
  EXPECT_NE(script.find("it''s a \"model\" '"), std::string::npos) << script;
  EXPECT_NE(script.find("25 4.5\n50 2\n"), std::string::npos) << script;
  EXPECT_NE(script.find("25 1.5\n"), std::string::npos) << script;
  EXPECT_NE(script.find("linecolor 1 pointtype 1 title 'lru', $s1"), std::string::npos) << script;
  EXPECT_NE(script.find("linecolor 1 pointtype 2 title 'lru, bias 0.5'"), std::string::npos) << script;
  EXPECT_NE(script.find("linecolor rgb 'black' pointtype 1 title 'belady'"), std::string::npos) << script;
}

}  // namespace
}  // namespace forebay
