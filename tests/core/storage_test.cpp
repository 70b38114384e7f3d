#include "core/storage.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class StorageTest : public testing::Test {
 protected:
  Path write(const Path& name, std::string_view content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
    return directory_ / name;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
};

TEST_F(StorageTest, ReadsAnyRange) {
  auto file = storage_->open(write("digits", "0123456789"));
  ASSERT_OK(file);
  EXPECT_EQ((*file)->size(), 10u);
  EXPECT_EQ((*file)->path(), directory_ / "digits");
  std::string out(4, '?');
  ASSERT_OK((*file)->read_at(3, std::as_writable_bytes(std::span(out))));
  EXPECT_EQ(out, "3456");
  EXPECT_OK((*file)->read_at(10, {})) << "nothing at the end is not a short read";
}

TEST_F(StorageTest, ShortReadNamesOffsetWantedAndGot) {
  auto file = storage_->open(write("digits", "0123456789"));
  ASSERT_OK(file);
  std::string out(8, '?');
  EXPECT_TRUE(fails_with((*file)->read_at(6, std::as_writable_bytes(std::span(out))), Code::kIo, "digits",
                         "offset 6", "8 bytes wanted", "4 got"));
}

TEST_F(StorageTest, FileCutWhileOpenIsAShortRead) {
  const Path path = write("digits", "0123456789");
  auto file = storage_->open(path);
  ASSERT_OK(file);
  std::filesystem::resize_file(path, 2);
  std::string out(10, '?');
  EXPECT_TRUE(fails_with((*file)->read_at(0, std::as_writable_bytes(std::span(out))), Code::kIo, "2 got"));
}

TEST_F(StorageTest, MissingFileIsNotFound) {
  EXPECT_TRUE(fails_with(storage_->open(directory_ / "none"), Code::kNotFound, "none", "open"));
  EXPECT_TRUE(fails_with(storage_->create(directory_ / "none/file"), Code::kNotFound, "none/file", "create"));
  EXPECT_TRUE(fails_with(storage_->remove(directory_ / "none"), Code::kNotFound, "none"));
  EXPECT_TRUE(fails_with(storage_->rename(directory_ / "none", directory_ / "some"), Code::kNotFound, "none",
                         "some"));
  EXPECT_FALSE(storage_->exists(directory_ / "none"));
}

TEST_F(StorageTest, OnlyFilesAreOpened) {
  EXPECT_TRUE(fails_with(storage_->open(directory_.path()), Code::kInvalidArgument, "directory"));
  const Path pipe = directory_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(fails_with(storage_->open(pipe), Code::kInvalidArgument, "pipe"));
}

TEST_F(StorageTest, MapsTheWholeFileAndKeepsItAfterTheFileIsDropped) {
  const std::string content(100'000, 'm');
  auto file = storage_->open(write("large", content));
  ASSERT_OK(file);
  auto mapping = (*file)->map();
  ASSERT_OK(mapping);
  file->reset();
  EXPECT_TRUE(std::ranges::equal((*mapping)->bytes(), as_bytes(content)));
}

TEST_F(StorageTest, EmptyFileReadsAndMapsToNothing) {
  const Path path = write("empty", "");
  auto file = storage_->open(path);
  ASSERT_OK(file);
  auto mapping = (*file)->map();
  ASSERT_OK(mapping);
  EXPECT_TRUE((*mapping)->bytes().empty());
  EXPECT_EQ(*read_text(*storage_, path), "");
}

TEST_F(StorageTest, AppendsAndOverwrites) {
  const Path path = write("out", "older and longer content");
  auto file = storage_->create(path);
  ASSERT_OK(file);
  ASSERT_OK((*file)->append(as_bytes("....")));
  ASSERT_OK((*file)->append(as_bytes("body")));
  EXPECT_EQ((*file)->position(), 8u);
  ASSERT_OK((*file)->write_at(0, as_bytes("HEAD")));
  EXPECT_EQ((*file)->position(), 8u) << "write_at does not move the end";
  ASSERT_OK((*file)->sync());
  ASSERT_OK((*file)->close());
  EXPECT_EQ(*read_text(*storage_, path), "HEADbody");
}

TEST_F(StorageTest, ALogGrowsAtItsEnd) {
  for (const std::string_view line : {"one\n", "two\n"}) {
    const auto file = storage_->open_to_append(directory_ / "log").value();
    ASSERT_OK(file->append(as_bytes(line)));
    ASSERT_OK(file->close());
  }
  EXPECT_EQ(read_text(*storage_, directory_ / "log").value(), "one\ntwo\n");
  EXPECT_EQ(storage_->open_to_append(directory_ / "log").value()->position(), 8u);
}

TEST_F(StorageTest, FullDeviceIsAnIoError) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  auto file = storage_->create("/dev/full");
  ASSERT_OK(file);
  EXPECT_TRUE(
      fails_with((*file)->append(as_bytes("x")), Code::kIo, "/dev/full", "write of 1 bytes at offset 0"));
}

TEST_F(StorageTest, ReadFileRefusesAboveTheLimitByNameAndSize) {
  const Path path = write("ten", "0123456789");
  EXPECT_EQ(read_file(*storage_, path, 10)->size(), 10u);
  EXPECT_TRUE(fails_with(read_file(*storage_, path, 9), Code::kInvalidArgument, "ten", "10 bytes", "9"));
  EXPECT_TRUE(fails_with(read_text(*storage_, path, 9), Code::kInvalidArgument, "ten"));
}

TEST_F(StorageTest, RenameReplacesAndRemoveRemoves) {
  const Path from = write("from", "new"), to = write("to", "old");
  ASSERT_OK(storage_->rename(from, to));
  EXPECT_FALSE(storage_->exists(from));
  EXPECT_EQ(*read_text(*storage_, to), "new");
  ASSERT_OK(storage_->remove(to));
  EXPECT_FALSE(storage_->exists(to));
}

TEST_F(StorageTest, DirectReadsGiveTheBytesAtEveryAlignment) {
  std::string content(3 * 4096 + 100, '.');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 + i / 4096);
  const Path path = write("direct", content);
  alignas(4096) static std::byte buffer[5 * 4096];
  for (const bool direct : {false, true}) {
    auto file = direct ? storage_->open_direct(path) : storage_->open(path);
    ASSERT_OK(file);
    for (uint64_t offset : {0, 1, 4095, 4096, 5000, 12288})
      for (uint64_t n : {1, 99, 4096, 7000}) {
        if (offset + n > content.size()) continue;
        auto got = (*file)->read_around(offset, n, buffer);
        ASSERT_OK(got);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(got->data()), got->size()),
                  content.substr(offset, n))
            << offset << " " << n << (direct ? " direct" : "");
      }
    EXPECT_TRUE(
        fails_with((*file)->read_around(content.size() - 10, 20, buffer), Code::kIo, "short read at offset"));
  }
}

}  // namespace
}  // namespace forebay
