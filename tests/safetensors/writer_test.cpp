#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "safetensors/safetensors.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(WriteSafetensors, RoundTrips) {
  const SafeTensorData tensors[] = {
      {"bytes", SafeType::kU8, {3}, bytes_of_text("abc")},
      {"wide", SafeType::kF64, {2, 1}, bytes_of_text("0123456789abcdef")},
      {"half", SafeType::kF16, {1, 1, 2}, bytes_of_text("wxyz")},
      {"none", SafeType::kF32, {4, 0}, {}},
      {"a \"quoted\" caf\xc3\xa9", SafeType::kI32, {}, bytes_of_text("4321")},
  };
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"\xe6\xb0\xb4", "line\nbreak"}};
  MemoryStorage storage;
  ASSERT_OK(write_safetensors(storage, "f", tensors, metadata));
  EXPECT_EQ(storage.n_files(), 1u);
  const Result<SafetensorsFile> file = SafetensorsFile::open(storage, "f");
  ASSERT_OK(file);
  EXPECT_EQ(file->metadata(), metadata);
  ASSERT_EQ(file->tensors().size(), std::size(tensors));
  for (const SafeTensorData& wanted : tensors) {
    const SafeTensor* tensor = file->find(wanted.name);
    ASSERT_NE(tensor, nullptr) << wanted.name;
    EXPECT_EQ(tensor->type, wanted.type);
    EXPECT_EQ(tensor->shape, wanted.shape);
    EXPECT_EQ(tensor->offset % static_cast<uint64_t>(bytes_of(tensor->type)), 0u) << wanted.name;
    const auto bytes = file->bytes(*tensor);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), wanted.bytes.begin(), wanted.bytes.end()))
        << wanted.name;
  }
}

TEST(WriteSafetensors, TheHeaderIsPaddedWithSpaces) {
  MemoryStorage storage;
  for (size_t n = 1; n < 20; ++n) {
    const SafeTensorData tensors[] = {{std::string(n, 't'), SafeType::kU8, {1}, bytes_of_text("x")}};
    ASSERT_OK(write_safetensors(storage, "f", tensors));
    const std::string& file = storage.get("f");
    EXPECT_EQ(file[8], '{');
    EXPECT_EQ((file.size() - 1) % 8, 0u);
    EXPECT_TRUE(file[file.size() - 2] == ' ' || file[file.size() - 2] == '}');
  }
}

TEST(WriteSafetensors, NothingIsAFileToo) {
  MemoryStorage storage;
  ASSERT_OK(write_safetensors(storage, "f", {}));
  const Result<SafetensorsFile> file = SafetensorsFile::open(storage, "f");
  ASSERT_OK(file);
  EXPECT_TRUE(file->tensors().empty());
}

TEST(WriteSafetensors, RefusesWhatReadersWouldRefuse) {
  MemoryStorage storage;
  const auto write = [&](std::vector<SafeTensorData> tensors,
                         std::map<std::string, std::string> metadata = {}) {
    return write_safetensors(storage, "out", tensors, metadata);
  };
  const auto bytes = bytes_of_text("1234");
  EXPECT_TRUE(fails_with(write({{"t", SafeType::kF32, {2}, bytes}}), Code::kInvalidArgument, "out", "\"t\"",
                         "4 bytes given", "needs 8"));
  EXPECT_TRUE(fails_with(write({{"t", SafeType::kF32, {1}, bytes}, {"t", SafeType::kF32, {1}, bytes}}),
                         Code::kInvalidArgument, "\"t\"", "twice"));
  EXPECT_TRUE(fails_with(write({{"t", SafeType::kF32, {UINT64_MAX, 4}, bytes}}), Code::kInvalidArgument,
                         "\"t\"", "2^63"));
  EXPECT_TRUE(
      fails_with(write({{"__metadata__", SafeType::kF32, {1}, bytes}}), Code::kInvalidArgument, "reserved"));
  EXPECT_TRUE(fails_with(write({{"\xff", SafeType::kF32, {1}, bytes}}), Code::kInvalidArgument, "UTF-8"));
  EXPECT_TRUE(fails_with(write({}, {{"k", "\xff"}}), Code::kInvalidArgument, "UTF-8"));
  EXPECT_EQ(storage.n_files(), 0u);
}

TEST(WriteSafetensors, AFailedWriteLeavesThePreviousFile) {
  const std::unique_ptr<Storage> posix = make_posix_storage();
  const SafeTensorData tensors[] = {{"a", SafeType::kU8, {4}, bytes_of_text("1234")},
                                    {"b", SafeType::kU8, {4}, bytes_of_text("5678")}};
  for (const StorageOp op :
       {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSync, StorageOp::kClose, StorageOp::kRename}) {
    for (int fail_at = 1;; ++fail_at) {
      ASSERT_LT(fail_at, 100);
      SCOPED_TRACE(testing::Message() << "operation " << static_cast<int>(op) << ", failure at " << fail_at);
      const TemporaryDirectory directory;
      const Path path = directory / "f.safetensors";
      std::ofstream(path) << "previous";
      FaultyStorage storage(*posix, {.op = op, .fail_at = fail_at, .keep_failing = true});
      const Result<void> written = write_safetensors(storage, path, tensors);
      EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
      if (storage.n_faults() == 0) {
        ASSERT_OK(written);
        ASSERT_OK(SafetensorsFile::open(*posix, path));
        EXPECT_GE(fail_at, 2);
        break;
      }
      EXPECT_TRUE(fails_with(written, Code::kIo, "f.safetensors", "injected fault"));
      std::ifstream file(path);
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "previous");
    }
  }
}

}  // namespace
}  // namespace forebay
