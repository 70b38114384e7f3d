// Bounds of block scores from 8-bit codes: they hold for every version's scores, whatever the values, and
// what is chosen by them is what scoring every block chooses.
#include "kernels/block_codes.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/block_select.h"
#include "parity.h"

namespace forebay {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Blocks {
  Blocks(std::vector<float> all, int dim)
      : pooled(std::move(all)), dim(dim), n(static_cast<int64_t>(pooled.size()) / dim) {
    bytes.resize(static_cast<size_t>(BlockCodes::n_tiles(n) * BlockCodes::tile_bytes(dim)));
    codes = {.tiles = bytes.data(), .dim = dim};
    encode_blocks(pooled.data(), 0, n, codes);
  }
  std::vector<float> scores(Isa isa, const std::vector<float>& q) const {
    std::vector<float> all(static_cast<size_t>(n));
    score_blocks(isa, q.data(), static_cast<int>(q.size()) / dim, dim, pooled.data(), n, all.data());
    return all;
  }

  std::vector<float> pooled;
  int dim;
  int64_t n;
  std::vector<std::byte> bytes;
  BlockCodes codes;
};

struct Bounds {
  Bounds(Isa isa, bool use_vnni, const CodedQuery& q, const Blocks& b)
      : low(static_cast<size_t>(BlockCodes::n_tiles(b.n) * BlockCodes::kTile)), high(low.size()) {
    bound_scores(isa, use_vnni, q, b.codes, 0, BlockCodes::n_tiles(b.n), low.data(), high.data());
    low.resize(static_cast<size_t>(b.n));
    high.resize(low.size());
  }
  std::vector<float> low, high;
};

/// Every version's bounds, against every version's scores; the versions agree.
void expect_bounded(const Blocks& blocks, const std::vector<float>& q) {
  CodedQuery coded;
  ASSERT_TRUE(encode_query(q.data(), static_cast<int>(q.size()) / blocks.dim, blocks.dim, coded));
  const Bounds plain(Isa::kReference, false, coded, blocks), fast(best_isa(), false, coded, blocks),
      vnni(best_isa(), has_vnni(), coded, blocks);
  EXPECT_EQ(fast.low, vnni.low);
  EXPECT_EQ(fast.high, vnni.high);
  for (const Isa isa : {Isa::kReference, best_isa()}) {
    const std::vector<float> exact = blocks.scores(isa, q);
    for (size_t b = 0; b < exact.size(); ++b)
      for (const Bounds* bounds : {&plain, &fast}) {
        if (std::isnan(exact[b])) {
          EXPECT_EQ(bounds->high[b], kInf) << b;
          continue;
        }
        ASSERT_LE(bounds->low[b], exact[b]) << name_of(isa) << ", block " << b << " of " << exact.size();
        ASSERT_GE(bounds->high[b], exact[b]) << name_of(isa) << ", block " << b << " of " << exact.size();
      }
  }
}

TEST(BlockCodes, BoundsHoldForAllSizesAndMagnitudes) {
  testing::Random random(5);
  for (const int dim : {1, 3, 4, 30, 32, 64, 128, 1024})
    for (const int n_heads : {1, 4, 5, 8})
      for (const float size : {1e-25f, 1e-12f, 1.0f, 1e6f, 1e12f}) {
        SCOPED_TRACE(::testing::Message() << n_heads << " heads of " << dim << ", about " << size);
        const Blocks blocks(random.normal(53 * dim, size), dim);
        expect_bounded(blocks, random.normal(n_heads * dim, 1.0f));
      }
}

TEST(BlockCodes, BoundsAreOfUse) {
  testing::Random random(6);
  const Blocks blocks(random.normal(4096 * 32), 32);
  const std::vector<float> q = random.normal(4 * 32);
  CodedQuery coded;
  ASSERT_TRUE(encode_query(q.data(), 4, 32, coded));
  const Bounds bounds(best_isa(), has_vnni(), coded, blocks);
  std::vector<uint32_t> scratch;
  const auto found = possible_blocks(best_isa(), bounds.low, bounds.high, 64, scratch);
  EXPECT_GE(found.size(), 64u);
  EXPECT_LT(found.size(), 512u);
}

TEST(BlockCodes, ValuesThatAreNotNumbersAreLookedAt) {
  testing::Random random(7);
  std::vector<float> pooled = random.normal(40 * 12);
  pooled[5 * 12 + 3] = std::nanf("");
  pooled[7 * 12] = kInf;
  pooled[8 * 12 + 11] = -kInf;
  for (int d = 0; d < 12; ++d) {
    pooled[20 * 12 + d] = 0;
    pooled[21 * 12 + d] = 1e30f;
    pooled[22 * 12 + d] = -3e38f;
    pooled[23 * 12 + d] = 1e-44f;
  }
  const Blocks blocks(pooled, 12);
  expect_bounded(blocks, random.normal(4 * 12));
  // A query of zeros: 0 * infinity.
  CodedQuery coded;
  for (const float bad : {0.0f, std::nanf(""), kInf, -kInf, 1e30f, 1e-38f})
    EXPECT_FALSE(encode_query(std::vector<float>(4 * 12, bad).data(), 4, 12, coded)) << bad;
}

/// The ranges by bounds, or none where they do not decide.
std::vector<CellRange> by_bounds(Isa isa, const Blocks& blocks, const std::vector<float>& q, int64_t n_keep) {
  CodedQuery coded;
  if (!encode_query(q.data(), static_cast<int>(q.size()) / blocks.dim, blocks.dim, coded)) return {};
  const Bounds bounds(isa, has_vnni(), coded, blocks);
  std::vector<uint32_t> keys, among;
  std::vector<CellRange> ranges;
  const auto found = possible_blocks(isa, bounds.low, bounds.high, n_keep, keys);
  std::vector<float> score(found.size());
  score_some_blocks(isa, q.data(), static_cast<int>(q.size()) / blocks.dim, blocks.dim, blocks.pooled.data(),
                    found, score.data());
  // The same bits as among all others.
  const std::vector<float> all = blocks.scores(isa, q);
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(score[i]), std::bit_cast<uint32_t>(all[found[i]]));
  if (!select_among(isa, found, score, blocks.n, n_keep, 4, 4 * blocks.n + 3, among, ranges)) return {};
  return ranges;
}

TEST(BlockCodes, WhatIsChosenIsTheSame) {
  testing::Random random(8);
  int n_decided = 0;
  for (int round = 0; round < 60; ++round) {
    const int dim = static_cast<int>(random.integer(1, 40)), n_heads = static_cast<int>(random.integer(1, 9));
    const int64_t n = random.integer(20, 700), n_keep = random.integer(1, n / 4);
    std::vector<float> pooled = random.normal(n * dim, round % 3 == 0 ? 1e-3f : 1.0f);
    // Repeated keys, which tie; keys close to each other; a value that is no number.
    if (round % 4 == 1)
      for (int64_t b = n / 2; b < n; ++b) std::copy_n(pooled.begin(), dim, pooled.begin() + b * dim);
    if (round % 4 == 2)
      for (int64_t i = dim; i < n * dim; ++i) pooled[i] = pooled[i % dim] + 1e-6f * pooled[i];
    if (round % 5 == 3) pooled[static_cast<size_t>(random.integer(0, n * dim - 1))] = std::nanf("");
    const Blocks blocks(pooled, dim);
    const std::vector<float> q = random.normal(n_heads * dim);
    for (const Isa isa : {Isa::kReference, best_isa()}) {
      std::vector<uint32_t> scratch;
      std::vector<CellRange> want;
      select_blocks(isa, blocks.scores(isa, q), n_keep, 4, 4 * n + 3, scratch, want);
      const std::vector<CellRange> got = by_bounds(isa, blocks, q, n_keep);
      if (got.empty()) continue;  // a tie
      ++n_decided;
      ASSERT_EQ(got.size(), want.size()) << "round " << round;
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].begin, want[i].begin) << "round " << round;
        EXPECT_EQ(got[i].end, want[i].end) << "round " << round;
      }
    }
  }
  EXPECT_GT(n_decided, 60);
}

TEST(BlockCodes, ATileIsWrittenPieceByPiece) {
  testing::Random random(9);
  const Blocks whole(random.normal(37 * 20), 20);
  std::vector<std::byte> bytes(whole.bytes.size());
  const BlockCodes pieces{.tiles = bytes.data(), .dim = 20};
  for (int64_t b = 0; b < 37; b += 5)
    encode_blocks(whole.pooled.data(), b, std::min<int64_t>(37, b + 5), pieces);
  EXPECT_EQ(bytes, whole.bytes);
}

}  // namespace
}  // namespace forebay
