// A row's bits depend on its own sequence alone: not on the window, the batch, the split or the threads.
#include <cstring>

#include <gtest/gtest.h>

#include "test_models.h"

namespace forebay {
namespace {

using testing::ids_of;
using testing::LoadedModel;
using testing::same_bits;

class Invariance : public ::testing::TestWithParam<std::string> {};

TEST_P(Invariance, WindowsOfOneToEightAndPrefillChunks) {
  LoadedModel m(testing::converted_vectors(GetParam()));
  const std::vector<int32_t> ids = ids_of(GetParam());
  const std::vector<float> whole = m.logits(ids, 256);
  for (int64_t window : {1, 2, 3, 4, 5, 6, 7, 8, 64, 128})
    EXPECT_TRUE(same_bits(whole, m.logits(ids, window))) << window;
}

TEST_P(Invariance, ThreadsChangeNothing) {
  LoadedModel one(testing::converted_vectors(GetParam()), 1), two(testing::converted_vectors(GetParam()), 2);
  const std::vector<int32_t> ids = ids_of(GetParam());
  EXPECT_TRUE(same_bits(one.logits(ids), two.logits(ids)));
}

TEST_P(Invariance, BatchesOfSequencesEqualTheirSoloRuns) {
  LoadedModel m(testing::converted_vectors(GetParam(), "q8_0"));
  const int64_t V = m.model->config().n_vocab;
  const std::vector<int32_t> ids = ids_of(GetParam());
  for (size_t n_sequences : {1u, 2u, 7u, 32u}) {
    // Sequence s has its own prompt (ids from s on, of its own length), then four tokens one at a time in a
    // batch.
    std::vector<SequenceState> states;
    std::vector<std::vector<int32_t>> tokens(n_sequences);
    std::vector<std::vector<float>> solo(n_sequences);
    for (size_t s = 0; s < n_sequences; ++s) {
      tokens[s].assign(ids.begin() + s, ids.begin() + s + 70 + 5 * (s % 5));
      solo[s] = m.logits(tokens[s]);
      states.push_back(m.state(128));
      const Span prompt{&states.back(), std::span(tokens[s]).first(tokens[s].size() - 4), LogitRows::kNone};
      ASSERT_TRUE(m.model->forward({&prompt, 1}).has_value());
    }
    for (size_t step = 4; step > 0; --step) {
      std::vector<Span> window;
      for (size_t s = 0; s < n_sequences; ++s)
        window.push_back(
            {&states[s], std::span(tokens[s]).subspan(tokens[s].size() - step, 1), LogitRows::kLast});
      const Result<ForwardOutput> out = m.model->forward(window);
      ASSERT_TRUE(out.has_value());
      for (size_t s = 0; s < n_sequences; ++s)
        EXPECT_EQ(std::memcmp(out->logits.row(s), solo[s].data() + (tokens[s].size() - step) * V,
                              V * sizeof(float)),
                  0)
            << n_sequences << " sequences, sequence " << s << ", step " << step;
    }
  }
}

TEST_P(Invariance, RestoredEqualsNeverStopped) {
  LoadedModel m(testing::converted_vectors(GetParam()));
  const int64_t V = m.model->config().n_vocab;
  const std::vector<int32_t> ids = ids_of(GetParam());
  const std::vector<float> whole = m.logits(ids);
  for (int64_t at : {1, 63, 64, 65, 101}) {
    SequenceState state = m.state(256);
    const auto run = [&](int64_t first, int64_t n) {
      const Span span{&state, std::span(ids).subspan(first, n), LogitRows::kAll};
      const Result<ForwardOutput> out = m.model->forward({&span, 1});
      EXPECT_TRUE(out.has_value());
      return std::vector<float>(out->logits.data, out->logits.data + n * V);
    };
    run(0, at);
    const Snapshot snapshot = state.snapshot();
    for (int again = 0; again < 3; ++again) {
      const std::vector<float> part = run(at, 30);
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + at * V, part.size() * sizeof(float)), 0) << at;
      ASSERT_TRUE(state.restore(snapshot).has_value());
    }
    state.reset();
    EXPECT_EQ(std::memcmp(run(0, 40).data(), whole.data(), 40 * V * sizeof(float)), 0) << "after reset";
  }
}

TEST_P(Invariance, RoundedRowsGiveEqualBitsToo) {
  const std::vector<int32_t> ids = ids_of(GetParam());
  std::vector<float> exact;
  for (KvType kv : {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8}) {
    ModelOptions options;
    options.kv = kv;
    LoadedModel one(testing::converted_vectors(GetParam()), 1, best_isa(), options);
    LoadedModel three(testing::converted_vectors(GetParam()), 3, best_isa(), options);
    const std::vector<float> whole = one.logits(ids);
    for (int64_t chunk : {1, 7, 64}) {
      const std::vector<float> parts = three.logits(ids, chunk);
      EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)), 0)
          << name_of(kv) << ", chunk " << chunk;
    }
    if (kv == KvType::kF32) {
      exact = whole;
      continue;
    }
    double worst = 0;
    for (size_t i = 0; i < whole.size(); ++i)
      worst = std::max(worst, std::fabs(static_cast<double>(whole[i]) - exact[i]));
    EXPECT_GT(worst, 0) << name_of(kv) << " rounds nothing";
    EXPECT_LT(worst, 1.0) << name_of(kv);  // a random router may choose another expert
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Invariance, ::testing::ValuesIn(testing::kFamilies),
                         [](const auto& i) { return i.param; });

TEST(ForwardArguments, AreCheckedBeforeAnyStateChanges) {
  LoadedModel m(testing::converted_vectors("qwen4exp"));
  SequenceState state = m.state(10);
  const auto message = [&](std::vector<Span> window) {
    const Result<ForwardOutput> out = m.model->forward(window);
    EXPECT_FALSE(out.has_value());
    return out.has_value() ? "" : out.error().message;
  };
  const std::vector<int32_t> good{1, 2}, negative{1, -1}, beyond{512}, many(11, 1);
  EXPECT_EQ(message({{&state, negative}}), "token -1: expected 0 to 511");
  EXPECT_EQ(message({{&state, beyond}}), "token 512: expected 0 to 511");
  EXPECT_EQ(message({{&state, many}}),
            "context: 0 tokens in the sequence and 11 more, but it was created for 10");
  EXPECT_EQ(message({{&state, good}, {&state, good}}), "window: spans 0 and 1 are of one sequence");
  EXPECT_EQ(message({{&state, {}}}), "window: span 0 has no tokens");
  EXPECT_EQ(message({}), "window: 0 tokens, expected 1 to 256");
  EXPECT_EQ(state.n_cells(), 0);
}

}  // namespace
}  // namespace forebay
