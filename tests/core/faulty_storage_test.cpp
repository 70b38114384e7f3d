#include "core/faulty_storage.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

class FaultyStorageTest : public testing::Test {
 protected:
  FaultyStorageTest() {
    auto file = below_->create(path_);
    EXPECT_OK(file);
    EXPECT_OK((*file)->append(std::as_bytes(std::span(std::string_view("abcdef")))));
    EXPECT_OK((*file)->close());
  }

  TemporaryDirectory directory_;
  const Path path_ = directory_ / "letters";
  std::unique_ptr<Storage> below_ = make_posix_storage();
};

TEST_F(FaultyStorageTest, FailsExactlyTheOperationAskedFor) {
  FaultyStorage storage(*below_, {.op = StorageOp::kRead, .fail_at = 2, .reason = "bad sector"});
  auto file = storage.open(path_);
  ASSERT_OK(file);
  std::byte out[2];
  EXPECT_OK((*file)->read_at(0, out));
  EXPECT_TRUE(fails_with((*file)->read_at(0, out), Code::kIo, "letters", "bad sector"));
  EXPECT_OK((*file)->read_at(0, out));
  EXPECT_EQ(storage.n_faults(), 1);
}

TEST_F(FaultyStorageTest, KeepsFailingWhenAsked) {
  FaultyStorage storage(
      *below_, {.op = StorageOp::kOpen, .fail_at = 2, .keep_failing = true, .code = Code::kOutOfMemory});
  EXPECT_OK(storage.open(path_));
  EXPECT_TRUE(fails_with(storage.open(path_), Code::kOutOfMemory));
  EXPECT_TRUE(fails_with(storage.open(path_), Code::kOutOfMemory));
  EXPECT_EQ(storage.n_faults(), 2);
}

TEST_F(FaultyStorageTest, FilesCountOnAfterTheStorageIsGone) {
  auto storage = std::make_unique<FaultyStorage>(*below_, FaultPlan{.op = StorageOp::kMap, .fail_at = 1});
  auto file = storage->open(path_);
  ASSERT_OK(file);
  storage.reset();
  EXPECT_TRUE(fails_with((*file)->map(), Code::kIo));
  EXPECT_OK((*file)->map());
}

// The loop every reader is tested with: fail the 1st, 2nd, ... read until a run meets no fault.
TEST_F(FaultyStorageTest, ReadLoopEndsAfterAsManyFaultsAsThereAreReads) {
  const auto read_in_pairs = [&](Storage& storage) -> Result<std::string> {
    auto file = TRY(storage.open(path_));
    std::string text(file->size(), '?');
    for (size_t at = 0; at < text.size(); at += 2)
      TRY(file->read_at(at, std::as_writable_bytes(std::span(text).subspan(at, 2))));
    return text;
  };
  int n_failed_runs = 0;
  for (int fail_at = 1;; ++fail_at) {
    FaultyStorage storage(*below_, {.op = StorageOp::kRead, .fail_at = fail_at});
    const Result<std::string> text = read_in_pairs(storage);
    EXPECT_EQ(text.has_value(), storage.n_faults() == 0);
    if (storage.n_faults() == 0) {
      EXPECT_EQ(*text, "abcdef");
      break;
    }
    ++n_failed_runs;
  }
  EXPECT_EQ(n_failed_runs, 3);
}

}  // namespace
}  // namespace forebay
