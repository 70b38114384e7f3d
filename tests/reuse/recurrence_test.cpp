// The algebra of staleness and of transport, against the layer's recurrence run twice over the same k, v, b,
// g.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "kernels/gated_delta.h"
#include "model/transport.h"
#include "reuse/staleness.h"
#include "tensor/half.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;

std::vector<float> noise(size_t n, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> out(n);
  for (float& x : out) x = normal(random);
  return out;
}

double norm_of(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

/// A log over C = [kFirst, end), and the layer's recurrence over it: the log's k, b and g are frozen.
struct Recorded {
  static constexpr int64_t kFirst = 20;

  /// A family's tiny random model over some tokens, its heads forgetful; or "synthetic": random unit keys,
  /// and memories that last.
  explicit Recorded(const std::string& kind)
      : pool(2), kernels(pool, best_isa()), end(kind == "synthetic" ? 220 : 26) {
    if (kind == "synthetic")
      invent();
    else
      run_model(kind);
  }

  void run_model(const std::string& family) {
    LoadedModel m(testing::converted_vectors(family));
    config = m.model->config();
    log.emplace(config, RecurrenceLog::Keep::kEverything);
    SequenceState state = m.state(256);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < end; ++i) ids.push_back(static_cast<int32_t>((i * i * 7 + 13 * i) % 500));
    for (int64_t first = 0; first < end; first += 9) {  // in windows that cut C
      Span span{&state, std::span(ids).subspan(first, std::min<int64_t>(9, end - first)), LogitRows::kNone};
      span.recurrence = &*log;
      EXPECT_TRUE(m.model->forward({&span, 1}).has_value());
    }
  }

  void invent() {
    config.n_blocks = 2;
    config.mixers = {MixerKind::kGatedDelta, MixerKind::kAttention};
    config.gated_delta.shape = {2, 6, 24, 16, HeadPairing::kGrouped};
    log.emplace(config, RecurrenceLog::Keep::kEverything);
    std::mt19937 random(7);
    std::uniform_real_distribution<float> b(0.01f, 0.99f), g(0.99f, 1.0f);
    for (int64_t cell = 0; cell < end; ++cell) {
      std::vector<float> k = noise(48, static_cast<uint32_t>(cell)), decay(6), beta(6);
      for (int head = 0; head < 2; ++head) {
        const std::span<float> key = std::span(k).subspan(head * 24, 24);
        const double norm = norm_of(key, std::vector<float>(24));
        for (float& x : key) x = static_cast<float>(x / norm);
      }
      for (float& x : decay) x = g(random);
      for (float& x : beta) x = b(random);
      log->observe(0, cell, {k.data(), 1, 48}, {decay.data(), 1, 6}, {beta.data(), 1, 6});
    }
  }

  size_t matrix_size() const {
    const GatedDeltaShape& s = config.gated_delta.shape;
    return static_cast<size_t>(s.n_v_heads) * s.k_dim * s.v_dim;
  }

  /// From `matrix`, with new values from a seed.
  std::vector<float> run(int block, std::vector<float> matrix, uint32_t seed) {
    const GatedDeltaConfig& g = config.gated_delta;
    const int64_t T = end - kFirst;
    std::vector<float> k, decay, beta, q(T * g.key_width());
    const std::vector<float> v = noise(T * g.value_width(), seed);
    std::vector<float> out(v.size());
    for (int64_t cell = kFirst; cell < end; ++cell) {
      for (uint16_t x : log->keys_f16(block, cell)) k.push_back(f32_from_f16(x));
      for (float x : log->decays(block, cell)) decay.push_back(x);
      for (float x : log->betas(block, cell)) beta.push_back(x);
    }
    gated_delta_rule(kernels, g.shape, {q.data(), T, g.key_width()}, {k.data(), T, g.key_width()},
                     {v.data(), T, g.value_width()}, {decay.data(), T, g.shape.n_v_heads},
                     {beta.data(), T, g.shape.n_v_heads}, matrix.data(), {out.data(), T, g.value_width()});
    return matrix;
  }

  ThreadPool pool;
  KernelContext kernels;
  int64_t end;
  ModelConfig config;
  std::optional<RecurrenceLog> log;
};

class Recurrence : public ::testing::TestWithParam<std::string> {};

TEST_P(Recurrence, TransportedDifferenceEqualsRunningTwice) {
  Recorded r(GetParam());
  const GatedDeltaShape& shape = r.config.gated_delta.shape;
  std::vector<int> heads(shape.n_v_heads);
  for (int h = 0; h < shape.n_v_heads; ++h) heads[h] = h;
  int n_blocks = 0;
  for (int block = 0; block < r.config.n_blocks; ++block) {
    if (r.config.mixers[block] != MixerKind::kGatedDelta) continue;
    ++n_blocks;
    const size_t size = r.matrix_size();
    const std::vector<float> before = noise(size, 1), instead = noise(size, 2);
    const std::vector<float> kept = r.run(block, before, 3), want = r.run(block, instead, 3);
    std::vector<float> difference(size);
    for (size_t i = 0; i < size; ++i) difference[i] = instead[i] - before[i];

    std::vector<float> plain = difference;
    transport_difference_ref(shape, *r.log, block, Recorded::kFirst, r.end, heads, plain);
    transport_difference(r.kernels, shape, *r.log, block, Recorded::kFirst, r.end, heads, difference);
    EXPECT_LT(norm_of(plain, difference), 1e-5 * norm_of(plain, std::vector<float>(size)) + 1e-9);
    std::vector<float> corrected = kept;
    for (size_t i = 0; i < size; ++i) corrected[i] += difference[i];
    EXPECT_LT(norm_of(corrected, want), 1e-5 * norm_of(want, std::vector<float>(size)));
    // The random models forget at once.
    if (std::string(GetParam()) == "synthetic") {
      EXPECT_GT(norm_of(kept, want), 1e-2 * norm_of(want, std::vector<float>(size)));
    }

    // One head alone: the same there, zero elsewhere.
    std::vector<float> alone(size);
    for (size_t i = 0; i < size; ++i) alone[i] = instead[i] - before[i];
    const std::vector<int> last{shape.n_v_heads - 1};
    transport_difference(r.kernels, shape, *r.log, block, Recorded::kFirst, r.end, last, alone);
    const size_t first_of_last = size - static_cast<size_t>(shape.k_dim) * shape.v_dim;
    for (size_t i = 0; i < first_of_last; ++i) ASSERT_EQ(alone[i], 0);
    EXPECT_EQ(std::vector<float>(alone.begin() + first_of_last, alone.end()),
              std::vector<float>(difference.begin() + first_of_last, difference.end()));
  }
  EXPECT_GT(n_blocks, 0);
}

TEST_P(Recurrence, TheBoundHolds) {
  Recorded r(GetParam());
  const GatedDeltaShape& shape = r.config.gated_delta.shape;
  const size_t size = static_cast<size_t>(shape.k_dim) * shape.v_dim;
  for (const uint32_t seed : {1u, 10u}) {
    RecurrentCopy before, instead, kept, want;
    for (RecurrentCopy* copy : {&before, &instead, &kept, &want}) copy->matrices.resize(r.config.n_blocks);
    for (int block = 0; block < r.config.n_blocks; ++block) {
      if (r.config.mixers[block] != MixerKind::kGatedDelta) continue;
      before.matrices[block] = noise(r.matrix_size(), seed);
      instead.matrices[block] = noise(r.matrix_size(), seed + 1);
      kept.matrices[block] = r.run(block, before.matrices[block], seed + 2);
      want.matrices[block] = r.run(block, instead.matrices[block], seed + 2);
    }
    const Staleness s = measure_staleness(r.config, *r.log, Recorded::kFirst, r.end, kept, &before, instead);
    double all = 0;
    for (const HeadStaleness& head : s.heads) {
      const auto of = [&](const RecurrentCopy& copy) {
        return std::span(copy.matrices[head.block]).subspan(head.head * size, size);
      };
      const double stale = norm_of(of(kept), of(want));
      // Keys rounded to f16 are a little longer or shorter than one, sums are rounded to f32.
      EXPECT_LE(stale, head.bound() * (1 + 1e-3) + 1e-5 * head.norm) << head.block << " " << head.head;
      all += stale * stale;
      EXPECT_LE(head.sum_log_decay, 0);
      EXPECT_GT(head.half_life(s.n_cells), 0);
    }
    EXPECT_GT(all, 0);
    EXPECT_GE(s.share_of_energy(), 0);
    EXPECT_LE(s.share_of_energy(), 1);
    EXPECT_LE(s.share_of_heads(), 1);
    EXPECT_GT(s.relative_bound(), 0);
  }
}

TEST_P(Recurrence, TheLogFollowsItsSequence) {
  Recorded r(GetParam());
  const RecurrenceLog& log = *r.log;
  EXPECT_TRUE(log.covers(0, r.end));
  EXPECT_FALSE(log.covers(0, r.end + 1));
  const std::vector<double> whole = log.sum_log_decay(0, 0, r.end), head = log.sum_log_decay(0, 0, 15),
                            tail = log.sum_log_decay(0, 15, r.end);
  for (size_t h = 0; h < whole.size(); ++h) EXPECT_NEAR(whole[h], head[h] + tail[h], 1e-9);

  const int64_t end = r.end - 5;
  const RecurrenceLog moved = log.moved(15, r.end, 10);
  EXPECT_TRUE(moved.covers(10, end));
  EXPECT_FALSE(moved.covers(9, end));
  EXPECT_EQ(moved.sum_log_decay(0, 10, end), tail);
  EXPECT_LT(moved.bytes(), log.bytes());
  RecurrenceLog edited = log;
  edited.truncate(10);
  edited.append(moved);
  EXPECT_TRUE(edited.covers(0, end));
  EXPECT_EQ(edited.sum_log_decay(0, 10, end), tail);

  // Rows at a cell that is there already replace it and what follows.
  std::vector<float> k(r.config.gated_delta.key_width()), g(r.config.gated_delta.shape.n_v_heads, 0.5f);
  const auto width = static_cast<int64_t>(g.size());
  edited.observe(0, 12, {k.data(), 1, static_cast<int64_t>(k.size())}, {g.data(), 1, width},
                 {g.data(), 1, width});
  EXPECT_NEAR(edited.sum_log_decay(0, 12, 13)[0], std::log(0.5), 1e-12);
  EXPECT_FALSE(edited.covers(12, 14));
  edited.clear();
  EXPECT_EQ(edited.bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Families, Recurrence,
                         ::testing::Values("synthetic", "qwen3next", "qwen35moe", "qwen4exp"),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace forebay
