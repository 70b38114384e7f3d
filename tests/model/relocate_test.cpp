// Moved rows against rows computed where they are moved to: an attention layer that sees the same inputs at
// both places. And what may not be moved.
#include "model/relocate.h"

#include <cmath>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/layers/layers.h"
#include "model/recurrent_copy.h"
#include "support/result_matchers.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;
using testing::same_bits;

/// One attention layer of a model by itself, over inputs of our choice.
class LoneLayer {
 public:
  LoneLayer(const std::string& family, int64_t context)
      : m_(testing::converted_vectors(family)), config_(m_.model->config()), nowhere_(no_planes_) {
    weights_ = Weights::load(*m_.file, nullptr, config_, m_.budget).value();
    scratch_ = Scratch::allocate(config_, weights_.mtp.has_value(), context, 2, m_.budget).value();
    y_.resize(context * config_.d_model);
  }

  const ModelConfig& config() const { return config_; }
  SequenceState state(int64_t context) { return m_.state(context); }

  /// Rows of x become cells [state.n_cells(), ...) of every attention layer and of the draft head.
  void append(SequenceState& state, std::span<const float> x) {
    const int64_t n = static_cast<int64_t>(x.size()) / config_.d_model;
    const std::vector<int32_t> tokens(n, 1);
    Batch batch;
    batch.n_rows = n;
    batch.parts = {{&state, 0, n, state.n_cells(), tokens}};
    for (int64_t i = 0; i < n; ++i) batch.positions.push_back(state.n_cells() + i);
    scratch_.rope.fill(batch.positions, config_.attention.n_rot, config_.attention.rope_theta);
    LayerContext lc{m_.kernels, config_, scratch_, nowhere_, routing_};
    const TensorView<const float> in(x.data(), n, config_.d_model);
    for (int i = 0; i < config_.n_blocks; ++i) {
      if (!weights_.blocks[i].attention) continue;
      attention_layer(lc, batch, *weights_.blocks[i].attention, i, config_.block_cells[i], in,
                      {y_.data(), n, config_.d_model});
    }
    if (weights_.mtp) {
      attention_layer(lc, batch, *weights_.mtp->block.attention, config_.n_blocks, 0, in,
                      {y_.data(), n, config_.d_model});
      state.advance_mtp(n);
    }
    state.advance(tokens);
  }

 private:
  LoadedModel m_;
  ModelConfig config_;
  Weights weights_;
  Scratch scratch_;
  std::vector<ExpertPlanes> no_planes_;
  MappedExperts nowhere_;
  RoutingOptions routing_;
  std::vector<float> y_;
};

std::vector<float> noise(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) x = normal(random);
  return out;
}

std::vector<float> joined(std::initializer_list<std::vector<float>> parts) {
  std::vector<float> out;
  for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

/// The largest difference over the largest value.
double relative_error(std::span<const float> a, std::span<const float> b) {
  double worst = 0, largest = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
  }
  return worst / largest;
}

class Relocate : public ::testing::TestWithParam<std::string> {};

TEST_P(Relocate, MovedRowsEqualRowsComputedThere) {
  constexpr int64_t kContext = 512, kA = 37, kB = 60;
  LoneLayer layer(GetParam(), kContext);
  const ModelConfig& c = layer.config();
  const int64_t D = c.d_model;
  const std::vector<float> a = noise(kA * D, 1), b = noise(kB * D, 2);
  // Shorter than the shift, so that source and destination do not overlap, and longer.
  for (const int64_t n_c : {9, 203})
    for (const int64_t delta : {-60, -24, -4, 4, 100}) {
      SCOPED_TRACE(fmt::format("{} cells by {}", n_c, delta));
      const std::vector<float> suffix = noise(n_c * D, 3);
      SequenceState moved = layer.state(kContext), fresh = layer.state(kContext);
      layer.append(moved, joined({a, b, suffix}));
      layer.append(fresh, joined({a, noise((kB + delta) * D, 4), suffix}));
      const CellMove move{kA + kB, n_c, delta};
      const RecurrentCopy before = RecurrentCopy::of(moved, c);
      ASSERT_OK(relocate_rows(moved, c, move));
      before.write_raw_keys(moved, c, move);

      const int64_t first = move.first + delta;
      const auto rows = [&](const KvRows& all) { return testing::decoded(all, first, n_c); };
      const auto check = [&](AttentionState& got, AttentionState& want) {
        EXPECT_TRUE(same_bits(rows(got.values), rows(want.values)));
        EXPECT_LT(relative_error(rows(got.keys), rows(want.keys)), 1e-6);
      };
      for (int i = 0; i < c.n_blocks; ++i) {
        if (c.mixers[i] != MixerKind::kAttention) continue;
        AttentionState& got = moved.attention(i);
        AttentionState& want = fresh.attention(i);
        check(got, want);
        if (c.block_cells[i] == 0) continue;
        const int64_t dim = c.indexer.head_dim, cells = c.block_cells[i];
        const int64_t first_block = (first + cells - 1) / cells, end_block = (first + n_c) / cells;
        const auto blocks = [&](std::span<float> all) {
          return all.subspan(first_block * dim, (end_block - first_block) * dim);
        };
        ASSERT_GT(end_block, first_block);
        EXPECT_LT(relative_error(blocks(got.pooled), blocks(want.pooled)), 2e-6);
        for (int64_t cell = std::max(first, first + n_c - AttentionState::kRawRing); cell < first + n_c;
             ++cell) {
          const auto slot = [&](AttentionState& s) {
            return s.raw.subspan(cell % AttentionState::kRawRing * dim, dim);
          };
          EXPECT_TRUE(same_bits(slot(got), slot(want))) << "raw key of cell " << cell;
        }
      }
      if (moved.has_mtp()) check(moved.mtp(), fresh.mtp());
    }
}

TEST_P(Relocate, ByNothingChangesNoBit) {
  LoneLayer layer(GetParam(), 128);
  const ModelConfig& c = layer.config();
  SequenceState state = layer.state(128);
  layer.append(state, noise(100 * c.d_model, 1));
  std::vector<std::vector<float>> before;
  const auto parts = [&] {
    std::vector<std::vector<float>> all;
    for (int i = 0; i < c.n_blocks; ++i)
      if (const AttentionState& a = state.attention(i); !a.keys.empty()) {
        all.push_back(testing::decoded(a.keys, 0, 128));
        all.push_back(testing::decoded(a.values, 0, 128));
        all.emplace_back(a.pooled.begin(), a.pooled.end());
        all.emplace_back(a.raw.begin(), a.raw.end());
      }
    return all;
  };
  before = parts();
  const RecurrentCopy copy = RecurrentCopy::of(state, c);
  ASSERT_OK(relocate_rows(state, c, {40, 60, 0}));
  copy.write_sums(state);
  copy.write_raw_keys(state, c, {40, 60, 0});
  const auto after = parts();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(same_bits(before[i], after[i]));
}

INSTANTIATE_TEST_SUITE_P(Families, Relocate, ::testing::ValuesIn(testing::kFamilies),
                         [](const auto& i) { return i.param; });

TEST(RelocateArguments, AreCheckedBeforeAnythingMoves) {
  LoadedModel m(testing::converted_vectors("qwen4exp"));
  const ModelConfig& c = m.model->config();
  EXPECT_EQ(shift_granule(c), 4);
  SequenceState state = m.state(64);
  const std::vector<int32_t> ids(40, 7);
  const Span span{&state, ids, LogitRows::kNone};
  ASSERT_OK(m.model->forward({&span, 1}));
  EXPECT_TRUE(fails_with(relocate_rows(state, c, {30, 11, 4}), Code::kInvalidArgument, "41", "40"));
  EXPECT_TRUE(fails_with(relocate_rows(state, c, {30, 10, 28}), Code::kInvalidArgument, "by 28", "64"));
  EXPECT_TRUE(fails_with(relocate_rows(state, c, {8, 10, -12}), Code::kInvalidArgument, "by -12"));
  EXPECT_TRUE(
      fails_with(relocate_rows(state, c, {30, 10, 6}), Code::kInvalidArgument, "by 6", "multiple of 4"));
  LoadedModel dense(testing::converted_vectors("qwen3"));
  EXPECT_EQ(shift_granule(dense.model->config()), 1);
}

/// Turning there and back, and turning twice: rotations add up.
TEST(KeyTurns, Compose) {
  for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent}) {
    AttentionConfig a;
    a.n_rot = 16;
    a.rope_theta = 1e6;
    a.rope_pairs = pairs;
    const std::vector<float> before = noise(24, 5);
    std::vector<float> there_and_back = before, twice = before, once = before;
    KeyTurn(a, 1000).apply(there_and_back.data());
    KeyTurn(a, -1000).apply(there_and_back.data());
    EXPECT_LT(relative_error(there_and_back, before), 2e-7);
    KeyTurn(a, 300).apply(twice.data());
    KeyTurn(a, 44).apply(twice.data());
    KeyTurn(a, 344).apply(once.data());
    EXPECT_LT(relative_error(twice, once), 2e-7);
    EXPECT_GT(relative_error(once, before), 0.01);
    EXPECT_TRUE(same_bits(std::span(once).subspan(16), std::span(before).subspan(16))) << "beyond n_rot";

    // The same layout as the kernel that rotated the key in the first place.
    ThreadPool pool(1);
    KernelContext kernels(pool, Isa::kReference);
    RopeTable table;
    const std::vector<int64_t> positions{344};
    table.fill(positions, 16, 1e6);
    std::vector<float> by_kernel = before;
    apply_rope(kernels, table, pairs, 1, 24, {by_kernel.data(), 1, 24});
    EXPECT_LT(relative_error(once, by_kernel), 2e-7);
  }
}

}  // namespace
}  // namespace forebay
