#include <filesystem>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "core/log.h"
#include "core/storage.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

constexpr std::string_view kOld = "the old file";
constexpr std::string_view kNew = "a new file in three writes";

Result<void> replace(Storage& storage, const Path& path) {
  AtomicFile file = TRY(AtomicFile::create(storage, path));
  const auto bytes = std::as_bytes(std::span(kNew));
  TRY(file.file().append(bytes.first(10)));
  TRY(file.file().append(bytes.subspan(10)));
  TRY(file.file().write_at(0, bytes.first(10)));
  return file.commit();
}

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() { write_old(); }

  void write_old() {
    auto file = storage_->create(path_);
    ASSERT_OK(file);
    ASSERT_OK((*file)->append(std::as_bytes(std::span(kOld))));
    ASSERT_OK((*file)->close());
  }
  size_t n_files() const {
    return std::distance(std::filesystem::directory_iterator(directory_.path()),
                         std::filesystem::directory_iterator());
  }

  TemporaryDirectory directory_;
  const Path path_ = directory_ / "file";
  std::unique_ptr<Storage> storage_ = make_posix_storage();
};

TEST_F(AtomicFileTest, ReadersSeeTheOldFileUntilCommit) {
  auto file = AtomicFile::create(*storage_, path_);
  ASSERT_OK(file);
  ASSERT_OK(file->file().append(std::as_bytes(std::span(kNew))));
  EXPECT_EQ(*read_text(*storage_, path_), kOld);
  EXPECT_TRUE(storage_->exists(directory_ / "file.partial"));
  ASSERT_OK(file->commit());
  EXPECT_EQ(*read_text(*storage_, path_), kNew);
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(AtomicFileTest, DroppedWithoutCommitLeavesTheOldFileAlone) {
  {
    auto file = AtomicFile::create(*storage_, path_);
    ASSERT_OK(file);
    ASSERT_OK(file->file().append(std::as_bytes(std::span(kNew))));
    AtomicFile moved = std::move(*file);
  }
  EXPECT_EQ(*read_text(*storage_, path_), kOld);
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(AtomicFileTest, WorksForANameWithoutDirectory) {
  const Path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  const Result<void> replaced = replace(*storage_, "file");
  std::filesystem::current_path(before);
  ASSERT_OK(replaced);
  EXPECT_EQ(*read_text(*storage_, path_), kNew);
}

// Fail the 1st, 2nd, ... operation of each kind until a run meets none: always an error, the old file
// whole, nothing left behind.
class AtomicFileFaults : public AtomicFileTest,
                         public testing::WithParamInterface<std::tuple<StorageOp, int, bool>> {};

TEST_P(AtomicFileFaults, OldFileSurvivesEveryFault) {
  const auto [op, expected_faults, keep_failing] = GetParam();
  int n_failed_runs = 0;
  for (int fail_at = 1;; ++fail_at) {
    FaultyStorage faulty(*storage_, {.op = op, .fail_at = fail_at, .keep_failing = keep_failing});
    const Result<void> replaced = replace(faulty, path_);
    if (faulty.n_faults() == 0) {
      ASSERT_OK(replaced);
      EXPECT_EQ(*read_text(*storage_, path_), kNew);
      EXPECT_EQ(n_files(), 1u);
      break;
    }
    ++n_failed_runs;
    EXPECT_TRUE(fails_with(replaced, Code::kIo, "file.partial"));
    EXPECT_EQ(*read_text(*storage_, path_), kOld);
    EXPECT_EQ(n_files(), 1u);
  }
  EXPECT_EQ(n_failed_runs, expected_faults);
}

INSTANTIATE_TEST_SUITE_P(
    EachOperation, AtomicFileFaults,
    testing::Values(std::tuple(StorageOp::kCreate, 1, false), std::tuple(StorageOp::kWrite, 3, false),
                    std::tuple(StorageOp::kWrite, 3, true), std::tuple(StorageOp::kSync, 1, false),
                    std::tuple(StorageOp::kClose, 1, false), std::tuple(StorageOp::kRename, 1, false)));

TEST_F(AtomicFileTest, PartialFileThatCannotBeRemovedIsReported) {
  FaultyStorage faulty(*storage_, {.op = StorageOp::kRemove, .fail_at = 1});
  testing::internal::CaptureStderr();
  { ASSERT_OK(AtomicFile::create(faulty, path_)); }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("file.partial"), std::string::npos);
  EXPECT_EQ(*read_text(*storage_, path_), kOld);
}

}  // namespace
}  // namespace forebay
