// Kernels with one version: exact small cases.
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/block_select.h"
#include "kernels/causal_conv.h"
#include "kernels/rope.h"
#include "kernels/router.h"
#include "kernels/streams.h"

namespace forebay {
namespace {

TEST(Router, PicksTheLargestAndRenormalises) {
  const std::vector<float> logits{0.0f, 2.0f, -1.0f, 1.0f, 2.0f};
  int32_t ids[3];
  float weights[3];
  route_top_k(logits, 3, ids, weights);
  EXPECT_EQ(ids[0], 1);  // ties go to the lowest id
  EXPECT_EQ(ids[1], 4);
  EXPECT_EQ(ids[2], 3);
  const double total = 2 * std::exp(2.0) + std::exp(1.0);
  EXPECT_NEAR(weights[0], std::exp(2.0) / total, 1e-7);
  EXPECT_NEAR(weights[2], std::exp(1.0) / total, 1e-7);
}

TEST(Router, NanNeverBeatsANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits{nan, -5.0f, nan, -4.0f};
  int32_t ids[2];
  float weights[2];
  route_top_k(logits, 2, ids, weights);
  EXPECT_EQ(ids[0], 3);
  EXPECT_EQ(ids[1], 1);
}

TEST(BlockSelect, KeepsTheBestBlocksAndTheTail) {
  const std::vector<float> score{1, 5, 0, 5, 2};
  std::vector<uint32_t> order;
  std::vector<CellRange> ranges;
  select_blocks(best_isa(), score, 2, 4, 23, order, ranges);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].begin, 4);
  EXPECT_EQ(ranges[0].end, 8);
  EXPECT_EQ(ranges[1].begin, 12);
  EXPECT_EQ(ranges[1].end, 16);
  EXPECT_EQ(ranges[2].begin, 20);
  EXPECT_EQ(ranges[2].end, 23);
}

TEST(BlockSelect, TiesKeepTheAskedNumberAndDependOnScoresAlone) {
  const std::vector<float> score{0, 0, 3, 0, 0, 0, 1, 0};
  std::vector<uint32_t> order;
  std::vector<CellRange> ranges, again;
  select_blocks(best_isa(), score, 4, 4, 32, order, ranges);
  select_blocks(Isa::kReference, score, 4, 4, 32, order, again);
  int64_t cells = 0;
  bool best = false, second = false;
  ASSERT_EQ(ranges.size(), again.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    cells += ranges[i].end - ranges[i].begin;
    best |= ranges[i].begin <= 8 && ranges[i].end >= 12;
    second |= ranges[i].begin <= 24 && ranges[i].end >= 28;
    EXPECT_EQ(ranges[i].begin, again[i].begin);
  }
  EXPECT_EQ(cells, 16);
  EXPECT_TRUE(best && second);
}

TEST(BlockSelect, NeighboursMerge) {
  const std::vector<float> score{9, 8, 7, 0};
  std::vector<uint32_t> order;
  std::vector<CellRange> ranges;
  select_blocks(best_isa(), score, 3, 4, 16, order, ranges);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].begin, 0);
  EXPECT_EQ(ranges[0].end, 12);
}

TEST(BlockSelect, KeepsTheLargestOfMany) {
  std::mt19937_64 random(5);
  for (int64_t n : {40, 1000, 5000})
    for (int64_t n_keep : {int64_t{1}, n / 3, n - 1}) {
      std::vector<float> score(n);
      for (float& s : score)
        s = std::ldexp(static_cast<float>(random() % 100000), static_cast<int>(random() % 20) - 20);
      if (n == 1000) score[n / 2] = std::numeric_limits<float>::quiet_NaN();
      std::vector<uint32_t> order;
      std::vector<CellRange> ranges;
      select_blocks(best_isa(), score, n_keep, 4, 4 * n + 3, order, ranges);
      std::vector<CellRange> plain;
      select_blocks(Isa::kReference, score, n_keep, 4, 4 * n + 3, order, plain);
      ASSERT_EQ(plain.size(), ranges.size());
      for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_EQ(plain[i].begin, ranges[i].begin);
        EXPECT_EQ(plain[i].end, ranges[i].end);
      }
      std::vector<bool> kept(n + 1);
      int64_t n_kept = 0;
      for (const CellRange& r : ranges)
        for (int64_t b = r.begin / 4; b < (r.end + 3) / 4; ++b) kept[b] = true;
      EXPECT_TRUE(kept[n]) << "the tail";
      float least = std::numeric_limits<float>::infinity(), most_dropped = 0;
      for (int64_t b = 0; b < n; ++b) {
        n_kept += kept[b];
        if (kept[b] && !std::isnan(score[b])) least = std::min(least, score[b]);
        if (!kept[b]) most_dropped = std::max(most_dropped, score[b]);
        if (std::isnan(score[b])) {
          EXPECT_TRUE(kept[b]) << "NaN cannot hide";
        }
      }
      EXPECT_EQ(n_kept, n_keep);
      EXPECT_GE(least, most_dropped);
    }
}

TEST(BlockSelect, KeysAndSearchesAreTheSameWhateverTheVersion) {
  using namespace block_select_detail;
  std::mt19937_64 random(9);
  std::vector<float> score = {0.0f,     -0.0f,     1.0f,   -1.0f,   NAN,  -NAN,
                              INFINITY, -INFINITY, 1e-42f, -1e-42f, 3e38f};
  while (score.size() < 333)
    score.push_back(static_cast<float>(static_cast<int64_t>(random() % 2001) - 1000));
  for (size_t n : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{64}, score.size()})
    for (size_t shift : {0, 1, 3}) {
      if (shift + n > score.size()) continue;
      std::vector<uint32_t> want(n + 1, 7), got(n + 1, 7), found(n + 1, 7), expected(n + 1, 7);
      keys_ref(score.data() + shift, n, want.data());
      keys_avx2(score.data() + shift, n, got.data());
      EXPECT_EQ(got, want) << n;
      for (const uint32_t least : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xbf800000u, UINT32_MAX}) {
        const uint32_t most = least | 0x1fffffu;
        const size_t n_expected = find_ref(want.data(), n, least, most, expected.data());
        ASSERT_EQ(find_avx2(got.data(), n, least, most, found.data()), n_expected);
        EXPECT_TRUE(std::equal(found.begin(), found.begin() + n_expected, expected.begin()));
      }
      for (const float least : {-INFINITY, -3.5f, 0.0f, 1.0f, 500.0f, INFINITY}) {
        const size_t n_expected = find_at_least_ref(score.data() + shift, n, least, expected.data());
        ASSERT_EQ(find_at_least_avx2(score.data() + shift, n, least, found.data()), n_expected);
        EXPECT_TRUE(std::equal(found.begin(), found.begin() + n_expected, expected.begin()));
      }
    }
}

TEST(BlockSelect, EverythingWhenThereAreFewBlocks) {
  const std::vector<float> score{3, 1};
  std::vector<uint32_t> order;
  std::vector<CellRange> ranges;
  select_blocks(best_isa(), score, 5, 4, 9, order, ranges);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].end, 9);
}

TEST(Rope, RotatesHalvesAndAdjacentPairs) {
  RopeTable table;
  const std::vector<int64_t> positions{3};
  table.fill(positions, 4, 100.0);
  const double angles[2] = {3.0, 3.0 * std::pow(100.0, -0.5)};
  float halves[5] = {1, 2, 3, 4, 5}, adjacent[5] = {1, 2, 3, 4, 5};
  apply_rope_row(table.cos.data(), table.sin.data(), 4, RopePairs::kHalves, halves);
  apply_rope_row(table.cos.data(), table.sin.data(), 4, RopePairs::kAdjacent, adjacent);
  EXPECT_NEAR(halves[0], 1 * std::cos(angles[0]) - 3 * std::sin(angles[0]), 1e-6);
  EXPECT_NEAR(halves[2], 3 * std::cos(angles[0]) + 1 * std::sin(angles[0]), 1e-6);
  EXPECT_NEAR(halves[1], 2 * std::cos(angles[1]) - 4 * std::sin(angles[1]), 1e-6);
  EXPECT_NEAR(adjacent[0], 1 * std::cos(angles[0]) - 2 * std::sin(angles[0]), 1e-6);
  EXPECT_NEAR(adjacent[3], 4 * std::cos(angles[1]) + 3 * std::sin(angles[1]), 1e-6);
  EXPECT_EQ(halves[4], 5);
  EXPECT_EQ(adjacent[4], 5);
}

TEST(PushHistory, KeepsTheNewestRows) {
  std::vector<float> history{1, 2, 3}, one{4}, many{5, 6, 7, 8};
  push_history({one.data(), 1, 1}, {history.data(), 3, 1});
  EXPECT_EQ(history, (std::vector<float>{2, 3, 4}));
  push_history({many.data(), 4, 1}, {history.data(), 3, 1});
  EXPECT_EQ(history, (std::vector<float>{6, 7, 8}));
}

TEST(WriteStreams, AddsTheGatedOutputToEveryStream) {
  ThreadPool pool(1);
  KernelContext ctx(pool, Isa::kReference);
  std::vector<float> streams{1, 1, 2, 2}, inject{0, 4}, y{10, 20};
  write_streams(ctx, 2, {inject.data(), 1, 2}, {y.data(), 1, 2}, {streams.data(), 1, 4});
  EXPECT_FLOAT_EQ(streams[0], 11);  // 2 sigmoid(0) = 1
  EXPECT_FLOAT_EQ(streams[1], 21);
  const float m = 2.0f / (1.0f + std::exp(-2.0f));
  EXPECT_FLOAT_EQ(streams[2], 2 + m * 10);
}

}  // namespace
}  // namespace forebay
