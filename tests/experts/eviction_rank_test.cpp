// The policies by hand, and against their definitions computed the slow way.
#include "experts/eviction_rank.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

namespace forebay {
namespace {

constexpr EvictionPolicy kAll[] = {EvictionPolicy::kDecay,    EvictionPolicy::kLru,
                                   EvictionPolicy::kLfu,      EvictionPolicy::kEma,
                                   EvictionPolicy::kNearPick, EvictionPolicy::kInverse};

/// One block of eight experts, two of them used.
struct Ranked {
  explicit Ranked(EvictionPolicy policy, double half_life = 4) : rank(policy, half_life, 1, 8, 2) {
    for (int32_t e = 0; e < 8; ++e) rank.insert({0, e});
  }

  void use(std::initializer_list<int32_t> experts) {
    rank.on_request();
    for (int32_t e : experts) rank.on_use({0, e});
  }
  /// Everything there is, coldest first.
  std::vector<int32_t> drain() {
    std::vector<int32_t> order;
    while (const std::optional<ExpertId> id = rank.coldest()) {
      order.push_back(id->index);
      rank.erase(*id);
    }
    return order;
  }

  EvictionRank rank;
};

using Order = std::vector<int32_t>;

TEST(EvictionRank, LruIsTheOrderOfLastUse) {
  Ranked ranked(EvictionPolicy::kLru);
  ranked.use({3, 1});
  ranked.use({0, 5});
  ranked.use({3, 7});
  EXPECT_EQ(ranked.drain(), (Order{2, 4, 6, 1, 0, 5, 3, 7})) << "of one request, the lowest id first";
}

TEST(EvictionRank, LfuCountsAndThenLooksAtTheLastUse) {
  Ranked ranked(EvictionPolicy::kLfu);
  ranked.use({0, 1});
  ranked.use({0, 2});
  ranked.use({3, 1});
  ranked.use({4, 5});
  EXPECT_EQ(ranked.drain(), (Order{6, 7, 2, 3, 4, 5, 0, 1}));
}

TEST(EvictionRank, DecayHalvesAUseEveryHalfLife) {
  Ranked ranked(EvictionPolicy::kDecay, 4);
  ranked.use({0});  // at tick 1, three uses by tick 3
  ranked.use({0});
  ranked.use({0});
  for (int i = 0; i < 8; ++i) ranked.use({7});
  const double before = ranked.rank.key({0, 0});
  ranked.use({1});  // at tick 12, worth more than what is left of three: 3 uses two half-lives ago
  EXPECT_LT(before, ranked.rank.key({0, 1}));
  EXPECT_NEAR(before / ranked.rank.key({0, 1}),
              std::exp2(-11.0 / 4) + std::exp2(-10.0 / 4) + std::exp2(-9.0 / 4), 1e-12);
  EXPECT_EQ(ranked.drain(), (Order{2, 3, 4, 5, 6, 0, 1, 7}));
}

TEST(EvictionRank, DecayForgetsWhatLfuKeeps) {
  for (EvictionPolicy policy : {EvictionPolicy::kLfu, EvictionPolicy::kDecay}) {
    Ranked ranked(policy, 2);
    for (int i = 0; i < 5; ++i) ranked.use({0});
    for (int i = 0; i < 20; ++i) ranked.use({7});
    ranked.use({1});
    const Order order = ranked.drain();
    const auto at = [&](int32_t e) { return std::find(order.begin(), order.end(), e) - order.begin(); };
    EXPECT_EQ(at(0) < at(1), policy == EvictionPolicy::kDecay) << name_of(policy);
  }
}

/// Logits whose order is `order`, best first, `gap` apart.
std::vector<float> logits_in_order(const Order& order, float gap) {
  std::vector<float> logits(order.size());
  for (size_t r = 0; r < order.size(); ++r) logits[order[r]] = -gap * static_cast<float>(r);
  return logits;
}

void route(EvictionRank& rank, const std::vector<float>& logits) {
  rank.on_route({.block = 0, .logits_E = logits});
}

TEST(EvictionRank, EmaAveragesProbabilitiesWhetherChosenOrNot) {
  Ranked ranked(EvictionPolicy::kEma, 4);
  ranked.rank.erase({0, 2});
  const Order order{5, 2, 0, 1, 3, 4, 6, 7};
  const std::vector<float> logits = logits_in_order(order, 0.5f);
  route(ranked.rank, logits);
  double sum = 0;
  for (float l : logits) sum += std::exp(l);
  for (int32_t e = 0; e < 8; ++e)
    EXPECT_NEAR(ranked.rank.key({0, e}), std::exp(logits[e]) / sum, 2e-3 * std::exp(logits[e]) / sum) << e;
  ranked.use({5, 2});
  EXPECT_NEAR(ranked.rank.key({0, 5}), 1 / sum, 2e-3 / sum) << "a use adds nothing";
  ranked.rank.insert({0, 2});
  EXPECT_EQ(ranked.drain(), Order(order.rbegin(), order.rend())) << "2 was routed while it was away";
}

TEST(EvictionRank, NearPickCreditsTheRanksBelowTheChosen) {
  Ranked ranked(EvictionPolicy::kNearPick, 1e9);
  route(ranked.rank, logits_in_order({6, 1, 4, 0, 7, 5, 3, 2}, 1));
  ranked.use({6, 1});
  EXPECT_NEAR(ranked.rank.key({0, 4}), 0.125, 1e-6);
  EXPECT_NEAR(ranked.rank.key({0, 0}), 0.125, 1e-6);
  EXPECT_EQ(ranked.rank.key({0, 7}), 0);
  EXPECT_EQ(ranked.drain(), (Order{2, 3, 5, 7, 0, 4, 1, 6}));
}

TEST(EvictionRank, InverseAveragesOneOverTheRank) {
  Ranked ranked(EvictionPolicy::kInverse, 4);
  route(ranked.rank, logits_in_order({0, 1, 2, 3, 4, 5, 6, 7}, 1));
  for (int i = 0; i < 4; ++i) ranked.use({0});
  route(ranked.rank, logits_in_order({7, 6, 5, 4, 3, 2, 1, 0}, 30));
  // The older row counts half; today's weight is 2.
  for (int32_t e = 0; e < 8; ++e)
    EXPECT_NEAR(ranked.rank.key({0, e}), 1.0 / (e + 1) + 2.0 / (8 - e), 1e-6) << e;
}

TEST(EvictionRank, OfAWindowsRowsTheOneThatGivesMostCounts) {
  const std::vector<float> first = logits_in_order({0, 1, 2, 3, 4, 5, 6, 7}, 1);
  const std::vector<float> second = logits_in_order({7, 6, 5, 4, 3, 2, 1, 0}, 1);
  for (EvictionPolicy policy : {EvictionPolicy::kEma, EvictionPolicy::kNearPick, EvictionPolicy::kInverse}) {
    const auto key_after = [&](const std::vector<const std::vector<float>*>& rows, int32_t e) {
      Ranked ranked(policy, 1e9);
      for (const std::vector<float>* row : rows) route(ranked.rank, *row);
      return ranked.rank.key({0, e});
    };
    for (int32_t e = 0; e < 8; ++e) {
      const double both = std::max(key_after({&first}, e), key_after({&second}, e));
      EXPECT_NEAR(key_after({&first, &second}, e), both, 1e-7) << name_of(policy) << ", expert " << e;
      EXPECT_NEAR(key_after({&second, &first, &first, &second}, e), both, 1e-7) << name_of(policy);
    }
    Ranked windows(policy, 1e9);
    for (int i = 0; i < 3; ++i) {
      route(windows.rank, first);
      windows.rank.on_request();
    }
    EXPECT_NEAR(windows.rank.key({0, 2}), 3 * key_after({&first}, 2), 1e-6) << "each window counts";
  }
}

TEST(EvictionRank, OnlyPoliciesThatReadRoutesChangeWithThem) {
  for (EvictionPolicy policy : kAll) {
    Ranked ranked(policy);
    route(ranked.rank, logits_in_order({0, 1, 2, 3, 4, 5, 6, 7}, 1));
    double sum = 0;
    for (int32_t e = 0; e < 8; ++e) sum += ranked.rank.key({0, e});
    EXPECT_EQ(sum != 0, ranked.rank.uses_routes()) << name_of(policy);
  }
}

TEST(EvictionRank, PinnedExpertsAreNoVictimsUntilTheLastPinGoes) {
  Ranked ranked(EvictionPolicy::kLru);
  EvictionRank& rank = ranked.rank;
  for (int32_t e = 0; e < 8; ++e) rank.pin({0, e});
  EXPECT_FALSE(rank.coldest().has_value());
  rank.pin({0, 3});
  rank.unpin({0, 3});
  EXPECT_FALSE(rank.coldest().has_value()) << "one pin is left";
  rank.unpin({0, 3});
  EXPECT_EQ(rank.coldest(), (ExpertId{0, 3}));
  rank.unpin({0, 2});
  EXPECT_EQ(rank.coldest(), (ExpertId{0, 2}));
  rank.erase({0, 2});
  EXPECT_EQ(rank.coldest(), (ExpertId{0, 3}));
  rank.erase({0, 3});
  rank.unpin({0, 5});
  EXPECT_EQ(rank.coldest(), (ExpertId{0, 5}));
  rank.insert({0, 2});
  EXPECT_TRUE(rank.resident({0, 2}));
  EXPECT_EQ(rank.coldest(), (ExpertId{0, 2}));
}

/// The definitions, term by term, over everything that ever happened.
class SlowRank {
 public:
  SlowRank(EvictionPolicy policy, double half_life, int n_used)
      : policy_(policy), half_life_(half_life), n_used_(n_used) {}

  void use(ExpertId id) {
    last_use_[id] = clock;
    if (policy_ != EvictionPolicy::kEma && policy_ != EvictionPolicy::kInverse) add(id, 1);
  }
  void route(int32_t block, std::span<const float> logits) {
    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
    double sum = 0;
    for (float l : logits) sum += std::exp(l - logits[order[0]]);
    for (int32_t r = 0; r < static_cast<int32_t>(order.size()); ++r) {
      const ExpertId id{block, order[r]};
      if (policy_ == EvictionPolicy::kEma && r < 64)
        add(id, std::exp(logits[order[r]] - logits[order[0]]) / sum);
      if (policy_ == EvictionPolicy::kInverse && r < 64) add(id, 1.0 / (r + 1));
      if (policy_ == EvictionPolicy::kNearPick && r >= n_used_ && r < 2 * n_used_) add(id, 0.125);
    }
  }
  double worth(ExpertId id) {
    if (policy_ == EvictionPolicy::kLru) return static_cast<double>(last_use_[id]);
    double sum = 0;
    for (const auto& [tick, amount] : added_[id])
      sum += policy_ == EvictionPolicy::kLfu
                 ? amount
                 : amount * std::exp2(-static_cast<double>(clock - tick) / half_life_);
    return sum;
  }
  std::tuple<double, uint64_t, ExpertId> order_of(ExpertId id) { return {worth(id), last_use_[id], id}; }

  uint64_t clock = 0;

 private:
  void add(ExpertId id, double amount) { added_[id].push_back({clock, amount}); }

  EvictionPolicy policy_;
  double half_life_;
  int n_used_;
  std::map<ExpertId, std::vector<std::pair<uint64_t, double>>> added_;
  std::map<ExpertId, uint64_t> last_use_;
};

class AgainstTheDefinition : public ::testing::TestWithParam<EvictionPolicy> {};

// Half-lives down to a tick: weights then pass the range of a double several times.
TEST_P(AgainstTheDefinition, VictimsAreTheSame) {
  constexpr int kBlocks = 3, kExperts = 20, kUsed = 3;
  std::vector<ExpertId> all;
  for (int32_t b = 0; b < kBlocks; ++b)
    for (int32_t e = 0; e < kExperts; ++e) all.push_back({b, e});
  for (double half_life : {1.0, 7.0, 100.0}) {
    const uint64_t seed = 11;
    std::mt19937_64 random(seed);
    EvictionRank fast(GetParam(), half_life, kBlocks, kExperts, kUsed);
    SlowRank slow(GetParam(), half_life, kUsed);
    std::normal_distribution<float> noise;
    for (int step = 0; step < 1500; ++step) {
      const int32_t block = step % kBlocks;
      std::vector<float> logits(kExperts);
      for (int e = 0; e < kExperts; ++e) logits[e] = 2 * noise(random) - 0.2f * static_cast<float>(e);
      fast.on_route({.block = block, .logits_E = logits});
      slow.route(block, logits);
      fast.on_request();
      ++slow.clock;
      std::vector<int32_t> order(kExperts);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
      std::vector<ExpertId> pinned;
      for (int r = 0; r < kUsed; ++r) pinned.push_back({block, order[r]});
      for (const ExpertId id : pinned) {
        fast.pin(id);
        fast.on_use(id);
        slow.use(id);
        fast.insert(id);
      }
      // Room for half of all.
      while (std::count_if(all.begin(), all.end(), [&](ExpertId id) { return fast.resident(id); }) > 30) {
        const std::optional<ExpertId> victim = fast.coldest();
        ASSERT_TRUE(victim.has_value());
        ASSERT_TRUE(fast.resident(*victim));
        ASSERT_EQ(std::count(pinned.begin(), pinned.end(), *victim), 0);
        std::optional<ExpertId> expected;
        for (const ExpertId id : all) {
          if (!fast.resident(id) || std::count(pinned.begin(), pinned.end(), id) > 0) continue;
          if (!expected || slow.order_of(id) < slow.order_of(*expected)) expected = id;
        }
        // Sums in another order: what rounding can tell apart is the same, and so are exact counts.
        const double least = slow.worth(*expected);
        const bool exact = GetParam() == EvictionPolicy::kLru || GetParam() == EvictionPolicy::kLfu;
        const double slack = GetParam() == EvictionPolicy::kEma ? 4e-3 : 1e-9;  // logits in steps of 1/1024
        if (exact) {
          ASSERT_EQ(*victim, *expected) << "step " << step << ", seed " << seed;
        } else {
          ASSERT_LE(slow.worth(*victim), least * (1 + slack) + 1e-300)
              << "step " << step << ", seed " << seed;
        }
        fast.erase(*victim);
      }
      for (const ExpertId id : pinned) fast.unpin(id);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AgainstTheDefinition, ::testing::ValuesIn(kAll), [](const auto& i) {
  std::string name(name_of(i.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(EvictionPolicyNames, GoThereAndBack) {
  for (EvictionPolicy policy : kAll) EXPECT_EQ(eviction_policy_from_name(name_of(policy)), policy);
  EXPECT_FALSE(eviction_policy_from_name("belady").has_value());
}

TEST(RouteRanker, SortsTheHeadLikeTheRouter) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  RouteRanker ranker(6);
  const RouteCandidates row = ranker.rank(std::vector<float>{0.0f, nan, 3.5f, -0.0f, 3.5f, -inf});
  EXPECT_EQ(std::vector<uint16_t>(row.ids.begin(), row.ids.end()), (std::vector<uint16_t>{2, 4, 0, 3, 5, 1}));
  EXPECT_EQ(std::vector<uint16_t>(row.gaps.begin(), row.gaps.end()),
            (std::vector<uint16_t>{0, 0, 3584, 3584, 65535, 65535}));
  EXPECT_EQ(row.top, 3584);

  std::mt19937_64 random(3);
  std::normal_distribution<float> noise;
  RouteRanker wide(300);
  std::vector<float> logits(300);
  for (float& l : logits) l = std::round(8 * noise(random)) / 8;  // many ties
  std::vector<uint16_t> order(300);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  const RouteCandidates head = wide.rank(logits);
  ASSERT_EQ(head.ids.size(), 64u);
  double sum = 0;
  for (float l : logits) sum += std::exp(l - logits[order[0]]);
  EXPECT_NEAR(head.log_sum, 1024 * std::log(sum), 1);
  for (size_t r = 0; r < head.ids.size(); ++r) {
    EXPECT_EQ(head.ids[r], order[r]) << r;
    EXPECT_EQ(head.gaps[r], 1024 * (logits[order[0]] - logits[order[r]])) << r;
    EXPECT_NEAR(exp_of_gap(head.gaps[r]), std::exp(logits[order[r]] - logits[order[0]]), 1e-6) << r;
  }
}

TEST(RouteRanker, HoldsWhateverTheLogitsAre) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  RouteRanker ranker(3);
  for (const std::vector<float>& logits :
       {std::vector<float>{nan, nan, nan}, {inf, inf, 0}, {-inf, -inf, nan}, {1e30f, -1e30f, 0}}) {
    const RouteCandidates row = ranker.rank(logits);
    double sum = 0;
    for (size_t r = 0; r < 3; ++r) sum += exp_of_gap(row.log_sum) * exp_of_gap(row.gaps[r]);
    EXPECT_NEAR(sum, 1, 2e-3);
    EXPECT_EQ(row.gaps[0], 0);
  }
}

}  // namespace
}  // namespace forebay
