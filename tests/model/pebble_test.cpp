// The trained model: the embedded file, and where the checkpoint is at hand the published log-probs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "convert/convert.h"
#include "temporary_directory.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::Expected;
using testing::LoadedModel;

const std::filesystem::path kCheckpoint =
    std::filesystem::path(FOREBAY_SOURCE_DIR) / ".." / "shared" / "models" / "pebble";

class PebbleCheckpoint : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!std::filesystem::exists(kCheckpoint / "model.safetensors")) return;
    folder_ = std::make_unique<TemporaryDirectory>();
    const auto storage = make_posix_storage();
    ThreadPool pool(2);
    ConvertOptions options;
    options.types = parse_type_plan("bf16").value();
    const auto done = convert_checkpoint(*storage, kCheckpoint, *folder_ / "pebble.gguf", options, pool,
                                         [](const ConvertProgress&) {}, {});
    ASSERT_TRUE(done.has_value()) << done.error().message;
  }
  static void TearDownTestSuite() { folder_.reset(); }
  void SetUp() override {
    if (folder_ == nullptr) GTEST_SKIP() << "the pebble checkpoint is not beside this checkout";
  }
  static std::unique_ptr<TemporaryDirectory> folder_;
};
std::unique_ptr<TemporaryDirectory> PebbleCheckpoint::folder_;

double log_sum_exp(const float* row, int64_t n) {
  const float top = *std::max_element(row, row + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(row[i]) - top);
  return top + std::log(sum);
}

TEST_F(PebbleCheckpoint, LogProbsDraftsAndGreedyTextEqualTheReference) {
  const Expected expected(kCheckpoint / "expected.safetensors");
  LoadedModel m(*folder_ / "pebble.gguf");
  const int64_t V = m.model->config().n_vocab;
  ASSERT_TRUE(m.model->has_mtp());
  double worst = 0;
  int64_t drafts = 0, equal_drafts = 0;
  // The greedy continuations start after the whole prompt; the other figures stop at 420 tokens.
  const std::map<std::string, size_t> greedy_starts{{"arith", 20}, {"define", 18}, {"tool", 441}};
  for (const std::string p : {"arith", "define", "tool", "manual", "kernel", "japanese", "python", "mixed"}) {
    const std::vector<int32_t> ids = expected.ints(p + ".ids"), top_ids = expected.ints(p + ".top_ids");
    const std::vector<float> top = expected.floats(p + ".top_logprobs");
    const std::vector<int32_t> mtp = expected.ints(p + ".mtp_top_ids");
    SequenceState state = m.state(1024);
    const auto T = static_cast<int64_t>(ids.size());
    std::vector<float> last;
    for (int64_t first = 0; first < T; first += 256) {
      const int64_t n = std::min<int64_t>(256, T - first);
      const Span span{&state, std::span(ids).subspan(first, n), LogitRows::kAll};
      const Result<ForwardOutput> out = m.model->forward({&span, 1});
      ASSERT_TRUE(out.has_value());
      for (int64_t t = 0; t < n; ++t) {
        const float* row = out->logits.row(t);
        const double lse = log_sum_exp(row, V);
        for (int64_t j = 0; j < 64; ++j) {
          const int64_t at = (first + t) * 64 + j;
          worst = std::max(worst, std::fabs(row[top_ids[at]] - lse - top[at]));
        }
      }
      last.assign(out->logits.row(n - 1), out->logits.row(n - 1) + V);
      const int64_t n_pairs = std::min(n, T - 1 - first);
      const Result<ForwardOutput> draft =
          m.model->draft(state, out->hidden.slice_rows(0, n_pairs),
                         std::span(ids).subspan(first + 1, n_pairs), LogitRows::kAll);
      ASSERT_TRUE(draft.has_value()) << draft.error().message;
      for (int64_t t = 0; t < n_pairs; ++t) {
        const float* row = draft->logits.row(t);
        ++drafts;
        equal_drafts += std::max_element(row, row + V) - row == mtp[(first + t) * 8];
      }
    }
    const auto greedy_start = greedy_starts.find(p);
    if (greedy_start == greedy_starts.end()) continue;
    const std::vector<int32_t> greedy = expected.ints(p + ".greedy_ids");
    for (size_t i = ids.size(); i < greedy.size(); ++i) {
      if (i >= greedy_start->second) {
        ASSERT_EQ(std::max_element(last.begin(), last.end()) - last.begin(), greedy[i])
            << p << " token " << i;
      }
      const Span span{&state, std::span(greedy).subspan(i, 1), LogitRows::kLast};
      const Result<ForwardOutput> out = m.model->forward({&span, 1});
      ASSERT_TRUE(out.has_value());
      last.assign(out->logits.row(0), out->logits.row(0) + V);
    }
  }
  std::printf("largest log-prob difference %.2e; draft head's best id equal at %d of %d positions\n", worst,
              static_cast<int>(equal_drafts), static_cast<int>(drafts));
  EXPECT_LE(worst, 1e-3);
  EXPECT_GE(static_cast<double>(equal_drafts), 0.99 * static_cast<double>(drafts));
}

class EmbeddedModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(testing::embedded_model()))
      GTEST_SKIP() << "models/pebble.gguf is not there";
  }
};

TEST_F(EmbeddedModel, WindowsThreadsAndBatchesGiveTheSameBits) {
  LoadedModel one(testing::embedded_model(), 1), two(testing::embedded_model(), 2);
  std::vector<int32_t> ids;
  for (int i = 0; i < 400; ++i)
    ids.push_back((i * 7919 + 13) % 12000);  // past the sparse budget of 256 cells
  const std::vector<float> whole = one.logits(ids, 256);
  for (int64_t window : {1, 5, 8, 64, 128}) {
    const std::vector<float> other = two.logits(ids, window);
    EXPECT_EQ(std::memcmp(whole.data(), other.data(), whole.size() * sizeof(float)), 0) << window;
  }
}

TEST_F(EmbeddedModel, DraftWindowsGiveTheSameBits) {
  LoadedModel m(testing::embedded_model());
  const int64_t V = m.model->config().n_vocab;
  std::vector<int32_t> ids;
  for (int i = 0; i < 90; ++i) ids.push_back((i * 7919 + 13) % 12000);
  std::vector<std::vector<float>> runs;
  for (int64_t window : {64, 1, 7}) {
    SequenceState state = m.state(128);
    std::vector<float>& all = runs.emplace_back();
    for (int64_t first = 0; first + 1 < 90; first += window) {
      const int64_t n = std::min(window, int64_t{89} - first);
      const Span span{&state, std::span(ids).subspan(first, n), LogitRows::kNone};
      const Result<ForwardOutput> out = m.model->forward({&span, 1});
      ASSERT_TRUE(out.has_value());
      const Result<ForwardOutput> draft =
          m.model->draft(state, out->hidden, std::span(ids).subspan(first + 1, n), LogitRows::kAll);
      ASSERT_TRUE(draft.has_value());
      all.insert(all.end(), draft->logits.data, draft->logits.data + n * V);
    }
  }
  for (size_t i = 1; i < runs.size(); ++i)
    EXPECT_EQ(std::memcmp(runs[0].data(), runs[i].data(), runs[0].size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace forebay
