// What becomes of a trace's rows: requests, tokens, next uses.
#include "replay/route_log.h"

#include <gtest/gtest.h>

#include "logs.h"

namespace forebay {
namespace {

using testing::LogBuilder;

std::vector<uint16_t> uses_of(const RouteLog& log, size_t request) {
  const LoggedRequest& r = log.requests[request];
  return {log.uses.begin() + r.first_use, log.uses.begin() + r.first_use + r.n_uses};
}

using Uses = std::vector<uint16_t>;

TEST(RouteLog, AWindowsRowsAreOneRequestPerBlock) {
  LogBuilder builder(2, 8, 2);
  constexpr auto kPrefill = RoutePhase::kPrefill;
  builder.row(0, {1, 2}, kPrefill).row(0, {5, 2}, kPrefill).row(0, {2, 7}, kPrefill);
  builder.row(1, {4, 3}, kPrefill).row(1, {3, 4}, kPrefill).row(1, {0, 4}, kPrefill);
  builder.row(0, {2, 6}).row(1, {0, 1});
  builder.row(1, {6, 7}, RoutePhase::kDraft).row(1, {7, 6}, RoutePhase::kDraft);
  builder.row(0, {6, 1}).row(1, {1, 0});
  const RouteLog log = builder.load();

  EXPECT_TRUE(log.complete);
  EXPECT_EQ(log.n_tokens, 5u) << "drafts are no tokens";
  EXPECT_EQ(log.n_biased_rows, 0u);
  ASSERT_EQ(log.requests.size(), 8u);
  EXPECT_EQ(uses_of(log, 0), (Uses{2, 1, 5, 7})) << "most rows first, then by number";
  EXPECT_EQ(uses_of(log, 1), (Uses{4, 3, 0}));
  EXPECT_EQ(uses_of(log, 4), (Uses{6, 7}));
  std::vector<uint32_t> before, fresh;
  for (const LoggedRequest& request : log.requests) {
    before.push_back(request.n_tokens_before);
    fresh.push_back(request.new_tokens);
  }
  EXPECT_EQ(before, (std::vector<uint32_t>{0, 0, 3, 3, 3, 3, 4, 4}));
  EXPECT_EQ(fresh, (std::vector<uint32_t>{3, 0, 1, 0, 0, 0, 1, 0}));
}

TEST(RouteLog, AWindowOfPromptsAndAnswersCountsItsTokensOnce) {
  LogBuilder builder(3, 4, 1, {0, 50, 60});
  for (int window = 0; window < 2; ++window)
    for (const int block : {1, 2}) {
      builder.row(block, {0}, RoutePhase::kPrefill).row(block, {1}, RoutePhase::kPrefill);
      builder.row(block, {0}, RoutePhase::kDecode);
    }
  const RouteLog log = builder.load();
  EXPECT_EQ(log.requests.size(), 8u);
  EXPECT_EQ(log.n_tokens, 6u);
}

TEST(RouteLog, KnowsTheNextUse) {
  LogBuilder builder(2, 4, 1);
  builder.row(0, {1}).row(1, {1}).row(0, {2}).row(1, {1}).row(0, {1}).row(1, {3});
  const RouteLog log = builder.load();
  EXPECT_EQ(log.next_use, (std::vector<uint32_t>{4, 3, kNeverAgain, kNeverAgain, kNeverAgain, kNeverAgain}));
}

TEST(RouteLog, LeavesPrunedExpertsOut) {
  LogBuilder builder(1, 4, 2);
  builder.row(0, {3, 1, 0, 2}).row(0, {0, 2, 3, 1});
  const RouteLog log = builder.load({{0, 3}, {0, 0}, {0, 2}});
  EXPECT_EQ(uses_of(log, 0), (Uses{1}));
  EXPECT_EQ(uses_of(log, 1), (Uses{1}));
  EXPECT_EQ(log.n_forced(0), 1u);
  const RouteCandidates left = log.candidates(1);
  EXPECT_EQ(Uses(left.ids.begin(), left.ids.end()), (Uses{1}));
  EXPECT_EQ(left.gaps[0], 3 * 1024);
}

TEST(RouteLog, PrunedExpertsMustExist) {
  MemoryStorage storage;
  const auto writer =
      TraceWriter::create(storage, "t",
                          {.model = "", .n_experts = 4, .n_used = 1, .expert_bytes = {5}, .slot_bytes = {5}})
          .value();
  ASSERT_OK(writer->finish());
  const std::vector<ExpertId> block{{1, 0}}, expert{{0, 4}};
  EXPECT_TRUE(fails_with(load_route_log(storage, "t", block), Code::kInvalidArgument, "expert 0 of block 1"));
  EXPECT_TRUE(
      fails_with(load_route_log(storage, "t", expert), Code::kInvalidArgument, "expert 4 of block 0"));
  EXPECT_EQ(load_route_log(storage, "t").value().n_tokens, 0u);
}

TEST(RouteLog, TellsThatTheTracedRunWasBiased) {
  MemoryStorage storage;
  const auto writer =
      TraceWriter::create(storage, "t",
                          {.model = "", .n_experts = 4, .n_used = 2, .expert_bytes = {5}, .slot_bytes = {5}})
          .value();
  const std::vector<float> logits{4, 3, 2, 1};
  const std::vector<int32_t> chosen{0, 2};
  writer->on_route({.block = 0, .logits_E = logits, .chosen = chosen});
  ASSERT_OK(writer->finish());
  const RouteLog log = load_route_log(storage, "t").value();
  EXPECT_EQ(log.n_biased_rows, 1u);
  EXPECT_EQ(uses_of(log, 0), (Uses{0, 1})) << "replays begin from the router's own choice";
}

}  // namespace
}  // namespace forebay
