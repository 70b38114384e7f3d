// The ledger: its terms add up, whatever the chain; and the bounds beside it.
#include "train/monitor/kl_ledger.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay::train {
namespace {

LedgerView view(ViewKind kind, std::string name, std::vector<float> values) {
  return {kind, std::move(name), [values]() -> Result<std::vector<float>> { return values; }};
}

std::vector<LedgerView> chain(size_t n_tokens, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> now(n_tokens);
  for (float& value : now) value = -2 + normal(random);
  std::vector<LedgerView> out;
  const std::vector<std::pair<ViewKind, std::string>> views = {
      {ViewKind::kSamplerDense, "sampler dense"}, {ViewKind::kSampler, "sampler"},
      {ViewKind::kTrainerDense, "trainer dense"}, {ViewKind::kBoundary, "boundary 0"},
      {ViewKind::kBoundary, "boundary 1"},        {ViewKind::kStaleBasis, "stale basis"},
      {ViewKind::kStale, "stale weights"}};
  for (const auto& [kind, name] : views) {
    out.push_back(view(kind, name, now));
    const float scale = kind == ViewKind::kBoundary ? 5 : 1e-4f;
    for (float& value : now) value -= scale * std::abs(normal(random));
  }
  return out;
}

TEST(KlLedger, TermsAddUpToTheGap) {
  for (const size_t n : {1u, 2u, 1000u, 200000u}) {
    const Result<KlLedger> ledger = make_ledger(chain(n, n));
    ASSERT_OK(ledger);
    EXPECT_EQ(ledger->terms.size(), 6u);
    EXPECT_LE(ledger->residual(), 1e-6);
    EXPECT_LE(ledger->residual(), 1e-12 * std::abs(ledger->gap) + 1e-15);
    EXPECT_EQ(ledger->n_tokens, static_cast<int64_t>(n));
  }
}

TEST(KlLedger, EachTermIsItsOwnShortcut) {
  const Result<KlLedger> ledger = make_ledger(std::vector<LedgerView>{
      view(ViewKind::kSampler, "a", {-1, -2, -3}), view(ViewKind::kTrainerDense, "b", {-1, -2, -3}),
      view(ViewKind::kBoundary, "c", {-2, -4, -3})});
  ASSERT_OK(ledger);
  EXPECT_EQ(ledger->terms[0].mean, 0);
  EXPECT_EQ(ledger->terms[0].largest, 0);
  EXPECT_EQ(ledger->terms[1].mean, 1);
  EXPECT_EQ(ledger->terms[1].largest, 2);
  EXPECT_NEAR(ledger->terms[1].error, 1 / std::sqrt(3.0), 1e-12);
  EXPECT_EQ(ledger->gap, 1);
}

TEST(KlLedger, ATokenThatAViewLacksIsLeftOutEverywhere) {
  const Result<KlLedger> ledger =
      make_ledger(std::vector<LedgerView>{view(ViewKind::kSampler, "a", {-1, -100, -3}),
                                          view(ViewKind::kBoundary, "b", {-2, std::nanf(""), -4})});
  ASSERT_OK(ledger);
  EXPECT_EQ(ledger->n_tokens, 2);
  EXPECT_EQ(ledger->n_left_out, 1);
  EXPECT_EQ(ledger->gap, 1);
}

TEST(KlLedger, Mistakes) {
  EXPECT_TRUE(fails_with(make_ledger(std::vector<LedgerView>{view(ViewKind::kSampler, "a", {-1})}),
                         Code::kInvalidArgument, "1 views"));
  EXPECT_TRUE(fails_with(make_ledger(std::vector<LedgerView>{view(ViewKind::kSampler, "a", {-1}),
                                                             view(ViewKind::kBoundary, "b", {-1, -2})}),
                         Code::kInvalidArgument, "b has 2", "a has 1"));
  EXPECT_TRUE(fails_with(make_ledger(std::vector<LedgerView>{view(ViewKind::kSampler, "a", {}),
                                                             view(ViewKind::kBoundary, "b", {})}),
                         Code::kInvalidArgument, "no token"));
}

TEST(KlLedger, TablesReadBack) {
  const std::vector<LedgerView> views = chain(50, 3);
  std::vector<std::vector<float>> values;
  for (const LedgerView& v : views) values.push_back(v.log_probs().value());
  values[2][7] = std::nanf("");
  const std::string text = views_text(views, values);
  const Result<std::vector<LedgerView>> back = parse_views(text, "t");
  ASSERT_OK(back);
  ASSERT_EQ(back->size(), views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    EXPECT_EQ((*back)[i].name, views[i].name);
    const std::vector<float> read = (*back)[i].log_probs().value();
    for (size_t t = 0; t < read.size(); ++t)
      EXPECT_TRUE(read[t] == values[i][t] || (std::isnan(read[t]) && std::isnan(values[i][t])));
  }
  EXPECT_TRUE(fails_with(parse_views("{\"view\":\"a\",\"log_probs\":[1]}\n{\"view\":1}", "t"), Code::kCorrupt,
                         "t:2"));
  EXPECT_TRUE(
      fails_with(parse_views("{\"view\":\"a\",\"log_probs\":[\"x\"]}", "t"), Code::kCorrupt, "no number"));
  EXPECT_NE(ledger_table(*make_ledger(*back)).find("boundary 1"), std::string::npos);
  EXPECT_NE(ledger_json(*make_ledger(*back)).find("\"left_out\":1"), std::string::npos);
}

TEST(KlLedger, EntropyBoundsOfTheStudy) {
  // 0.575 nats of entropy over 151,936 tokens take a distance of 0.0354 and a KL of 0.0025.
  const double distance = distance_of_entropy(0.575, 151936);
  EXPECT_NEAR(distance, 0.0354, 5e-5);
  EXPECT_NEAR(2 * distance * distance, 0.0025, 5e-5);
  EXPECT_NEAR(pinsker_distance(2 * distance * distance), distance, 1e-12);
  EXPECT_EQ(pinsker_distance(1e9), 1);
  EXPECT_EQ(entropy_bound(0, 100), 0);
}

}  // namespace
}  // namespace forebay::train
