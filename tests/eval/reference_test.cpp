#include "eval/reference.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "eval/kld.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

class KeptReference : public testing::Test {
 protected:
  void SetUp() override {
    options_.model = FOREBAY_SOURCE_DIR "/models/pebble.gguf";
    if (!std::filesystem::exists(options_.model)) GTEST_SKIP() << "models/pebble.gguf is not there";
    options_.chunk = 32;
    engine_.emplace(Engine::open(options_).value());
    KldOptions cut;
    cut.window_tokens = 40;
    const EvalText text{"text",
                        "Rivers run to the sea; 37 + 58 is 95, and 95 + 5 is 100. What is left of a day "
                        "after six hours? Eighteen. The list holds apples, pears, and three kinds of nuts."};
    windows_ = cut_windows(*engine_, {&text, 1}, cut).value();
    ASSERT_GT(windows_.size(), 1u);
  }

  /// All windows' logits, one after the other.
  Result<std::vector<float>> all_logits(KldReference& reference) {
    std::vector<float> all, some;
    for (const KldWindow& window : windows_) {
      if (Result<void> read = reference.read(window, some); !read) return std::move(read).error();
      all.insert(all.end(), some.begin(), some.end());
    }
    if (Result<void> finished = reference.finish(); !finished) return std::move(finished).error();
    return all;
  }

  Result<std::vector<float>> kept_logits() {
    Result<std::unique_ptr<KldReference>> kept =
        kept_reference(*storage_, path_, *engine_, options_, windows_);
    if (!kept) return std::move(kept).error();
    return all_logits(**kept);
  }

  const TemporaryDirectory directory_;
  const Path path_ = directory_ / "kept";
  const std::unique_ptr<Storage> storage_ = make_posix_storage();
  EngineOptions options_;
  std::optional<Engine> engine_;
  std::vector<KldWindow> windows_;
};

TEST_F(KeptReference, GivesTheSameBits) {
  const Result<std::vector<float>> computed = all_logits(*computed_reference(*engine_));
  ASSERT_OK(computed);
  const Result<std::vector<float>> first = kept_logits(), second = kept_logits();
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_EQ(*computed, *first);
  EXPECT_EQ(*computed, *second);
  const std::vector<float> rows = reference_rows(*engine_, windows_, {}).value();
  EXPECT_EQ(*computed, *all_logits(*remembered_reference(*engine_, rows)));
  EXPECT_LT(std::filesystem::file_size(path_), computed->size() * sizeof(float) / 4);
}

TEST_F(KeptReference, IsRefusedForOtherTextsAndOptions) {
  ASSERT_OK(kept_logits());
  EngineOptions other = options_;
  other.int8_activations = true;
  EXPECT_TRUE(fails_with(kept_reference(*storage_, path_, *engine_, other, windows_), Code::kInvalidArgument,
                         path_.string(), "other options"));
  windows_[0].ids[3] += 1;
  EXPECT_TRUE(fails_with(kept_reference(*storage_, path_, *engine_, options_, windows_),
                         Code::kInvalidArgument, path_.string()));
}

TEST_F(KeptReference, DamageIsFound) {
  ASSERT_OK(kept_logits());
  const std::string whole = read_text(*storage_, path_).value();
  const auto put = [&](const std::string& bytes) {
    const std::unique_ptr<WritableFile> file = storage_->create(path_).value();
    ASSERT_OK(file->append(std::as_bytes(std::span(bytes))));
    ASSERT_OK(file->close());
  };
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  put(flipped);
  EXPECT_TRUE(fails_with(kept_logits(), Code::kCorrupt, path_.string(), "checksum"));
  put(whole.substr(0, whole.size() - 100));
  EXPECT_FALSE(kept_logits().has_value());
  put(std::string(200, 'x'));
  EXPECT_TRUE(fails_with(kept_logits(), Code::kCorrupt, path_.string()));
}

TEST_F(KeptReference, AppearsOnlyWhenItIsWhole) {
  std::unique_ptr<KldReference> reference =
      kept_reference(*storage_, path_, *engine_, options_, windows_).value();
  std::vector<float> logits;
  ASSERT_OK(reference->read(windows_[0], logits));
  reference.reset();
  EXPECT_FALSE(storage_->exists(path_));
}

}  // namespace
}  // namespace forebay
