// Caches by hand, against a plain simulator, and against every possible schedule.
#include "replay/simulate.h"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "logs.h"

namespace forebay {
namespace {

using testing::LogBuilder;
using testing::synthetic_log;
using testing::SyntheticShape;

constexpr EvictionPolicy kPolicies[] = {EvictionPolicy::kDecay,    EvictionPolicy::kLru,
                                        EvictionPolicy::kLfu,      EvictionPolicy::kEma,
                                        EvictionPolicy::kNearPick, EvictionPolicy::kInverse};

uint64_t misses(const RouteLog& log, std::optional<EvictionPolicy> policy, uint64_t n_slots,
                float lambda = 0) {
  return simulate(log, {policy, 100 * n_slots, 50, {lambda, 1, 16}}, {}).counted.n_misses;
}

TEST(Simulate, ByHand) {
  // One block, one expert per token, three slots.
  const auto play = [](const std::vector<int32_t>& experts) {
    LogBuilder builder(1, 6, 1);
    for (int32_t e : experts) builder.row(0, {e});
    return builder.load();
  };
  const RouteLog a = play({0, 0, 0, 1, 2, 3, 0, 4, 0, 1, 3});
  // lru: 0m h h 1m 2m 3m(-0) 0m(-1) 4m(-2) 0h 1m(-3) 3m(-4)
  EXPECT_EQ(misses(a, EvictionPolicy::kLru, 3), 8u);
  // lfu: 0m h h 1m 2m 3m(-1) 0h 4m(-2) 0h 1m(-3) 3m(-4): what is used often stays
  EXPECT_EQ(misses(a, EvictionPolicy::kLfu, 3), 7u);
  // MIN: 0m h h 1m 2m 3m(-2) 0h 4m(-3, needed last) 0h 1h 3m
  EXPECT_EQ(misses(a, std::nullopt, 3), 6u);
  EXPECT_EQ(misses(a, EvictionPolicy::kLru, 6), 5u) << "everything fits: each once";
}

TEST(Simulate, CountsWhereItBelongs) {
  LogBuilder builder(2, 4, 2, {1000, 3000});
  builder.row(0, {0, 1}).row(1, {0, 1});
  builder.row(0, {0, 2}).row(1, {0, 1});
  builder.row(0, {2, 1}, RoutePhase::kPrefill).row(0, {2, 3}, RoutePhase::kPrefill);
  const RouteLog log = builder.load();
  ReplayOptions options{.warm_up_tokens = 1, .phases = ReplayPhases::kAll, .cost = {1e3, 0.5, 1e4}};
  ReplayConfig config{EvictionPolicy::kLru, 1 << 20, 100, {}};
  const ReplayResult all = simulate(log, config, options);
  EXPECT_EQ(all.warm_up.n_tokens, 1u);
  EXPECT_EQ(all.warm_up.n_misses, 4u);
  EXPECT_EQ(all.warm_up.bytes_read, 8000u);
  EXPECT_EQ(all.counted.n_tokens, 3u);
  EXPECT_EQ(all.counted.n_requests, 3u);
  EXPECT_EQ(all.counted.n_uses, 7u);
  EXPECT_EQ(all.counted.n_misses, 2u) << "expert 2, then 3";
  EXPECT_EQ(all.counted.n_cold, 2u);
  EXPECT_EQ(all.counted.bytes_read, 2000u);
  // A read of 1000 bytes takes 0.5 s and 1 s, longer than computing the hits; then what came is computed.
  EXPECT_NEAR(all.counted.seconds, 2 * (1.5 + 0.1) + 2 * 0.3, 1e-9);

  options.phases = ReplayPhases::kDecode;
  const ReplayResult decode = simulate(log, config, options);
  EXPECT_EQ(decode.counted.n_tokens, 1u);
  EXPECT_EQ(decode.counted.n_misses, 1u);
  options.phases = ReplayPhases::kPrefill;
  const ReplayResult prefill = simulate(log, config, options);
  EXPECT_EQ(prefill.counted.n_tokens, 2u);
  EXPECT_EQ(prefill.counted.n_misses, 1u);
  EXPECT_EQ(prefill.warm_up.n_tokens, 0u);
}

TEST(Simulate, ForcedMissesAreReadEveryTime) {
  LogBuilder builder(1, 4, 2);
  builder.row(0, {3, 1, 0, 2}).row(0, {0, 2, 3, 1});
  const RouteLog log = builder.load({{0, 3}, {0, 0}, {0, 2}});
  for (const std::optional<EvictionPolicy> policy : {std::optional(EvictionPolicy::kLru), {}}) {
    const ReplayCounts counts = simulate(log, {policy, 1000, 50, {}}, {}).counted;
    EXPECT_EQ(counts.n_forced, 2u);
    EXPECT_EQ(counts.n_misses, 3u) << "expert 1 once";
    EXPECT_EQ(counts.n_uses, 4u);
  }
}

/// Plain and slow: residency in a set, worth from the whole history.
uint64_t plain_misses(const RouteLog& log, std::optional<EvictionPolicy> policy, uint64_t n_slots,
                      double half_life) {
  std::set<ExpertId> resident;
  std::map<ExpertId, std::vector<size_t>> ticks;
  uint64_t n_misses = 0;
  for (size_t r = 0; r < log.requests.size(); ++r) {
    const LoggedRequest& request = log.requests[r];
    std::set<ExpertId> wanted;
    for (uint32_t u = request.first_use; u < request.first_use + request.n_uses; ++u)
      wanted.insert({request.block, log.uses[u]});
    for (const ExpertId id : wanted) ticks[id].push_back(r + 1);
    const auto worth = [&](ExpertId id) -> std::pair<double, double> {
      const std::vector<size_t>& used = ticks[id];
      if (!policy) {
        for (size_t later = r + 1; later < log.requests.size(); ++later) {
          const LoggedRequest& l = log.requests[later];
          if (l.block != id.block) continue;
          for (uint32_t u = l.first_use; u < l.first_use + l.n_uses; ++u)
            if (log.uses[u] == id.index) return {-static_cast<double>(later), 0};
        }
        return {-1e18, 0};
      }
      if (*policy == EvictionPolicy::kLru) return {static_cast<double>(used.back()), 0};
      double sum = 0;
      for (const size_t t : used)
        sum += *policy == EvictionPolicy::kLfu ? 1 : std::exp2(static_cast<double>(t) / half_life);
      return {sum, static_cast<double>(used.back())};
    };
    for (const ExpertId id : wanted) {
      if (resident.contains(id)) continue;
      ++n_misses;
      while (resident.size() >= n_slots) {
        std::optional<ExpertId> victim;
        for (const ExpertId other : resident)
          if (!wanted.contains(other) && (!victim || worth(other) < worth(*victim))) victim = other;
        resident.erase(*victim);
      }
      resident.insert(id);
    }
  }
  return n_misses;
}

TEST(Simulate, AgreesWithAPlainSimulator) {
  SyntheticShape shape{.n_blocks = 3, .n_experts = 16, .n_used = 3, .seed = 5};
  const RouteLog log = synthetic_log(shape, 120, 4, 3);
  for (const uint64_t n_slots : {12u, 20u, 40u, 48u})
    for (const std::optional<EvictionPolicy> policy :
         {std::optional(EvictionPolicy::kLru), std::optional(EvictionPolicy::kLfu),
          std::optional(EvictionPolicy::kDecay), std::optional<EvictionPolicy>()})
      EXPECT_EQ(misses(log, policy, n_slots), plain_misses(log, policy, n_slots, 50))
          << (policy ? name_of(*policy) : "belady") << ", " << n_slots << " slots";
}

/// The fewest misses of any schedule at all: over sets of resident experts, request by request.
uint64_t fewest_misses(const RouteLog& log, int n_slots) {
  std::map<uint32_t, uint64_t> best{{0, 0}};
  for (const LoggedRequest& request : log.requests) {
    uint32_t wanted = 0;
    for (uint32_t u = request.first_use; u < request.first_use + request.n_uses; ++u)
      wanted |= 1u << log.uses[u];
    std::map<uint32_t, uint64_t> next;
    for (const auto& [resident, cost] : best) {
      const uint32_t others = resident & ~wanted;
      const uint64_t total = cost + std::popcount(wanted & ~resident);
      for (uint32_t kept = others;; kept = (kept - 1) & others) {  // every subset
        const uint32_t set = kept | wanted;
        if (std::popcount(set) <= n_slots) {
          const auto at = next.try_emplace(set, total).first;
          at->second = std::min(at->second, total);
        }
        if (kept == 0) break;
      }
    }
    best = std::move(next);
  }
  uint64_t least = UINT64_MAX;
  for (const auto& [set, cost] : best) least = std::min(least, cost);
  return least;
}

TEST(Simulate, NoScheduleAtAllMissesLessThanMin) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SyntheticShape shape{.n_blocks = 1, .n_experts = 9, .n_used = 2, .seed = seed};
    const RouteLog log = synthetic_log(shape, 60);
    for (const int n_slots : {2, 3, 5, 8})
      EXPECT_EQ(misses(log, std::nullopt, n_slots), fewest_misses(log, n_slots))
          << n_slots << " slots, seed " << seed;
  }
}

TEST(Simulate, NoPolicyMissesLessThanMin) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SyntheticShape shape{.n_blocks = 5, .n_experts = 24, .n_used = 3, .seed = seed};
    const RouteLog log = synthetic_log(shape, 200, 6, 4);
    for (const uint64_t n_slots : {24u, 30u, 60u, 119u, 120u}) {
      const uint64_t least = misses(log, std::nullopt, n_slots);
      for (const EvictionPolicy policy : kPolicies)
        EXPECT_LE(least, misses(log, policy, n_slots)) << name_of(policy) << ", seed " << seed;
      EXPECT_GT(least, 0u);
    }
  }
}

TEST(Simulate, LambdaZeroIsNoBiasAndABiasSavesMisses) {
  const RouteLog log = synthetic_log({.n_blocks = 4, .n_experts = 32, .n_used = 4}, 300, 8);
  for (const EvictionPolicy policy : kPolicies) {
    const ReplayConfig exact{policy, 100 * 40, 50, {}};
    ReplayConfig zero = exact, some = exact;
    zero.bias = {0, 0, 32};
    some.bias = {0.8f, 1, 12};
    const ReplayCounts e = simulate(log, exact, {}).counted, z = simulate(log, zero, {}).counted,
                       s = simulate(log, some, {}).counted;
    EXPECT_EQ(z.n_misses, e.n_misses);
    EXPECT_EQ(z.n_swapped, 0u);
    EXPECT_LT(s.n_misses, e.n_misses * 9 / 10) << name_of(policy);
    EXPECT_GT(s.n_swapped, 0u);
    EXPECT_EQ(s.n_uses, e.n_uses) << "as many experts, but others";
  }
}

TEST(Simulate, ABiasTakesWhatWasInMemoryBeforeTheRequest) {
  // Two of six per row, four slots; ranks are log 2 apart, so that lambda 1.5 moves a resident expert up by
  // one rank.
  const float gap = std::log(2.0f);
  LogBuilder builder(1, 6, 2);
  builder.row(0, {0, 1}, RoutePhase::kDecode, gap).row(0, {2, 3, 4}, RoutePhase::kDecode, gap);
  builder.row(0, {4, 5, 2}, RoutePhase::kDecode, gap);   // 2 for 5
  builder.row(0, {4, 5, 2}, RoutePhase::kPrefill, gap);  // a prompt: exactly, 5 is read
  const RouteLog log = builder.load();
  const ReplayCounts counts = simulate(log, {EvictionPolicy::kLru, 400, 50, {1.5f, 1, 3}}, {}).counted;
  EXPECT_EQ(counts.n_swapped, 1u);
  EXPECT_EQ(counts.n_misses, 6u);
  EXPECT_EQ(misses(log, EvictionPolicy::kLru, 4), 6u);
  const ReplayCounts protected_ = simulate(log, {EvictionPolicy::kLru, 400, 50, {1.5f, 2, 3}}, {}).counted;
  EXPECT_EQ(protected_.n_swapped, 0u);
}

TEST(Simulate, AskingForMoreThanFitsGoesInWaves) {
  LogBuilder builder(1, 8, 2);
  for (int round = 0; round < 2; ++round)
    for (int32_t e = 0; e < 8; e += 2) builder.row(0, {e, e + 1}, RoutePhase::kPrefill);
  // One block: every row is a request of its own, so the window is made by hand.
  RouteLog log = builder.load();
  log.requests.resize(1);
  log.requests[0].n_rows = 4;
  log.requests[0].n_uses = 8;
  for (const std::optional<EvictionPolicy> policy : {std::optional(EvictionPolicy::kLru), {}})
    EXPECT_EQ(simulate(log, {policy, 300, 50, {}}, {}).counted.n_misses, 8u);
}

TEST(Simulate, SlotsOfTwoSizesShareTheBudget) {
  LogBuilder builder(2, 8, 1, {1000, 100});
  for (int32_t e = 0; e < 8; ++e) builder.row(0, {0}).row(1, {e});
  for (int32_t e = 0; e < 8; ++e) builder.row(0, {0}).row(1, {e});
  const RouteLog log = builder.load();
  EXPECT_EQ(simulate(log, {EvictionPolicy::kLru, 1800, 50, {}}, {}).counted.n_misses, 9u)
      << "room for all eight";
  EXPECT_EQ(simulate(log, {EvictionPolicy::kLru, 1799, 50, {}}, {}).counted.n_misses, 17u)
      << "a cycle through seven";
  EXPECT_LT(simulate(log, {std::nullopt, 1799, 50, {}}, {}).counted.n_misses, 12u);
}

TEST(Simulate, BudgetsBelowOneTokenAreRefusedWithTheNumber) {
  LogBuilder builder(2, 8, 3, {1000, 400});
  const RouteLog log = builder.load();
  EXPECT_TRUE(
      fails_with(check_budget(log, 2999), Code::kInvalidArgument, "2999 bytes", "at least 3000 bytes"));
  EXPECT_OK(check_budget(log, 3000));
}

}  // namespace
}  // namespace forebay
