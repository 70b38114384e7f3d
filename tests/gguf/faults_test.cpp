/// Every storage operation fails once: readers see the old file or the whole new one, and nothing is left
/// over.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "gguf/gguf.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

Result<void> write_model(Storage& storage, const Path& path) {
  GgufWriter out = TRY(GgufWriter::create(storage, path));
  out.set("general.name", GgufValue::string("new"));
  const uint64_t ne[] = {5};
  for (const char* name : {"a", "b", "c"}) TRY(out.declare(name, DType::kF32, ne));
  TRY(out.write_headers());
  const std::byte bytes[20]{};
  for (int i = 0; i < 3; ++i) TRY(out.write_data(bytes));
  return out.finish();
}

std::string contents(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t n_files(const Path& directory) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

TEST(GgufFaults, AFailedWriteLeavesThePreviousFile) {
  const std::unique_ptr<Storage> posix = make_posix_storage();
  for (const StorageOp op :
       {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSync, StorageOp::kClose, StorageOp::kRename}) {
    for (const bool keep_failing : {false, true}) {
      int n_faults_met = 0;
      for (int fail_at = 1;; ++fail_at) {
        ASSERT_LT(fail_at, 100);
        SCOPED_TRACE(testing::Message()
                     << "operation " << static_cast<int>(op) << ", failure at " << fail_at);
        const TemporaryDirectory directory;
        const Path path = directory / "model.gguf";
        std::ofstream(path) << "previous";
        FaultyStorage storage(*posix, {.op = op, .fail_at = fail_at, .keep_failing = keep_failing});
        const Result<void> written = write_model(storage, path);
        EXPECT_EQ(n_files(directory.path()), 1u);
        if (storage.n_faults() == 0) {
          ASSERT_OK(written);
          ASSERT_OK(GgufFile::open(*posix, path));
          break;
        }
        ++n_faults_met;
        EXPECT_TRUE(fails_with(written, Code::kIo, "model.gguf", "injected fault"));
        EXPECT_EQ(contents(path), "previous");
      }
      EXPECT_GE(n_faults_met, op == StorageOp::kWrite ? 4 : 1);
    }
  }
}

TEST(GgufFaults, AFailedReadIsAnError) {
  const std::unique_ptr<Storage> posix = make_posix_storage();
  const TemporaryDirectory directory;
  const Path path = directory / "model.gguf";
  ASSERT_OK(write_model(*posix, path));
  for (const StorageOp op : {StorageOp::kOpen, StorageOp::kMap}) {
    FaultyStorage storage(*posix, {.op = op, .fail_at = 1});
    EXPECT_TRUE(fails_with(GgufFile::open(storage, path), Code::kIo, "model.gguf", "injected fault"));
    EXPECT_EQ(storage.n_faults(), 1);
  }
}

}  // namespace
}  // namespace forebay
