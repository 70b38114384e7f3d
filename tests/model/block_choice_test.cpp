// Choosing blocks by bounds (kernels/block_codes.h): not a bit of a whole model changes, and codes follow the
// keys wherever those go.
#include <cstring>

#include <gtest/gtest.h>

#include "model/relocate.h"
#include "support/result_matchers.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;
using testing::same_bits;

std::vector<int32_t> some_ids(int64_t n, int n_vocab) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>((i * 131 + i * i % 89) % n_vocab));
  return ids;
}

/// Logits of every window's last position, in windows of these lengths in turn.
std::vector<float> logits_of(LoadedModel& m, SequenceState& state, std::span<const int32_t> ids,
                             std::vector<int64_t> windows) {
  std::vector<float> all;
  for (size_t done = 0, turn = 0; done < ids.size(); ++turn) {
    const size_t n = std::min<size_t>(static_cast<size_t>(windows[turn % windows.size()]), ids.size() - done);
    const Span span{&state, ids.subspan(done, n), LogitRows::kLast};
    const Result<ForwardOutput> out = m.model->forward({&span, 1});
    EXPECT_OK(out);
    if (!out) return all;
    all.insert(all.end(), out->logits.data, out->logits.data + out->logits.cols);
    done += n;
  }
  return all;
}

/// Of all layers together; 0: none has an index.
int64_t n_coded(LoadedModel& m, SequenceState& state) {
  int64_t sum = 0;
  for (int i = 0; i < m.model->config().n_blocks; ++i) sum += state.attention(i).n_coded;
  return sum;
}

TEST(BlockChoice, ByBoundsNotABitChanges) {
  std::vector<std::filesystem::path> files{testing::converted_vectors("qwen4exp")};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  files.push_back(testing::embedded_model());
#endif
  for (const std::filesystem::path& file : files) {
    LoadedModel m(file);
    m.kernels.set_activations(Activations::kInt8);
    const std::vector<int32_t> ids = some_ids(1300, m.model->config().n_vocab);
    const std::vector<int64_t> windows = {256, 256, 256, 256, 101, 1, 1, 3, 1, 8};
    SequenceState exact = m.state(1400);
    for (int i = 0; i < m.model->config().n_blocks; ++i) exact.attention(i).codes.tiles = nullptr;
    const std::vector<float> want = logits_of(m, exact, ids, windows);
    EXPECT_EQ(n_coded(m, exact), 0);
    for (const bool use_vnni : {true, false}) {
      m.kernels.set_use_vnni(use_vnni);
      SequenceState state = m.state(1400);
      EXPECT_TRUE(same_bits(logits_of(m, state, ids, windows), want)) << file << ", " << use_vnni;
      EXPECT_EQ(n_coded(m, state) > 0, best_isa() != Isa::kReference) << file;
    }
  }
}

/// What is counted as coded is what encoding again gives.
void expect_current(LoadedModel& m, SequenceState& state, const char* after) {
  const int dim = m.model->config().indexer.head_dim;
  for (int i = 0; i < m.model->config().n_blocks; ++i) {
    const AttentionState& a = state.attention(i);
    if (a.n_coded == 0) continue;
    std::vector<std::byte> bytes(
        static_cast<size_t>(BlockCodes::n_tiles(a.n_coded) * BlockCodes::tile_bytes(dim)));
    const BlockCodes again{.tiles = bytes.data(), .dim = dim};
    // Lanes that nobody wrote are not compared.
    std::memcpy(bytes.data(), a.codes.tiles, bytes.size());
    encode_blocks(a.pooled.data(), 0, a.n_coded, again);
    EXPECT_EQ(std::memcmp(bytes.data(), a.codes.tiles, bytes.size()), 0)
        << "after " << after << ", block " << i << ", " << a.n_coded << " coded";
  }
}

TEST(BlockChoice, CodesFollowTheKeys) {
  if (best_isa() == Isa::kReference) GTEST_SKIP() << "the plain kernels score every block";
  LoadedModel m(testing::converted_vectors("qwen4exp"));
  const std::vector<int32_t> ids = some_ids(700, m.model->config().n_vocab);
  const auto part = [&](int64_t first, int64_t n) { return std::span(ids).subspan(first, n); };
  SequenceState state = m.state(800);
  logits_of(m, state, part(0, 303), {64, 1});
  ASSERT_GT(n_coded(m, state), 0);
  expect_current(m, state, "windows");
  const Snapshot snapshot = state.snapshot();
  logits_of(m, state, part(303, 97), {7});
  ASSERT_OK(state.restore(snapshot));
  logits_of(m, state, part(400, 50), {1});
  expect_current(m, state, "going back");
  ASSERT_OK(m.model->arm_undo(state));
  logits_of(m, state, part(500, 8), {8});
  ASSERT_OK(m.model->keep(state, 2));
  logits_of(m, state, part(300, 9), {1});
  expect_current(m, state, "keeping two of eight");
  ASSERT_OK(relocate_rows(state, m.model->config(), {100, 160, 24}));
  expect_current(m, state, "a move up");
  ASSERT_OK(relocate_rows(state, m.model->config(), {200, 100, -40}));
  expect_current(m, state, "a move down");
  logits_of(m, state, part(10, 40), {5});
  expect_current(m, state, "going on");
  // Keys from elsewhere.
  for (int i = 0; i < m.model->config().n_blocks; ++i)
    for (float& x : state.attention(i).pooled) x = -x;
  state.adopt(part(0, 300), 0);
  EXPECT_EQ(n_coded(m, state), 0);
  logits_of(m, state, part(300, 1), {1});
  ASSERT_GT(n_coded(m, state), 0);
  expect_current(m, state, "rows from elsewhere");
  state.reset();
  logits_of(m, state, part(50, 300), {256, 1});
  expect_current(m, state, "beginning again");
}

}  // namespace
}  // namespace forebay
