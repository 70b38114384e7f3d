/// Where tensors may lie in their file, and what the room they were given says about type id 42.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "gguf/gguf.h"
#include "raw_gguf.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

TEST(Placement, OffsetsNearTheEndOf64BitsAreRefused) {
  const uint64_t top = uint64_t{1} << 63;
  for (const uint64_t offset :
       {top - 32, top, top + 32, UINT64_MAX - 31, UINT64_MAX - 63, uint64_t{1} << 40}) {
    raw::File file;
    file.tensor("first", {8}, raw::kF32, 0).tensor("far", {8}, raw::kF32, offset).data_bytes(64);
    EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kCorrupt, "'far'", "32", "the file ends at"));
  }
}

TEST(Placement, OffsetPlusSizeDoesNotWrap) {
  raw::File file;
  // 2^62 bytes, three quarters of the way: the sum passes 2^64.
  file.tensor("wide", {1ull << 60}, raw::kF32, 3ull << 62).data_bytes(64);
  EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kCorrupt, "'wide'", std::to_string(3ull << 62),
                         std::to_string(1ull << 62), "the file ends at"));
}

TEST(Placement, OffsetsKeepTheAlignment) {
  raw::File file;
  file.tensor("t", {8}, raw::kF32, 16).data_bytes(64);
  EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kCorrupt, "'t'", "16", "alignment 32"));
}

TEST(Placement, OverlapNamesBothTensors) {
  raw::File file;
  file.tensor("low", {16}, raw::kF32, 0).tensor("high", {8}, raw::kF32, 32).data_bytes(64);
  EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kCorrupt, "'low'", "needs 64 bytes", "'high'"));
  raw::File same;
  same.tensor("one", {8}, raw::kF32, 0).tensor("two", {8}, raw::kF32, 0).data_bytes(64);
  EXPECT_TRUE(fails_with(raw::parse(same.bytes()), Code::kCorrupt, "'one'", "'two'"));
}

TEST(Placement, AnyOrderAndAnyGapIsFine) {
  raw::File file;
  file.tensor("last", {8}, raw::kF32, 4096).tensor("first", {32}, raw::kQ4_0, 64).data_bytes(4096 + 500);
  const Result<GgufHeaders> headers = raw::parse(file.bytes());
  ASSERT_OK(headers);
  EXPECT_EQ(headers->tensors[0].offset, headers->data_offset + 4096);
}

/// 4 x 1024 weights of id 42, then a tensor where a writer of `block_bytes` per `block_weights` puts it.
raw::File file_of_42(uint64_t block_weights, uint64_t block_bytes) {
  const uint64_t n_bytes = 4 * 1024 / block_weights * block_bytes;
  const uint64_t next = (n_bytes + 31) / 32 * 32;
  raw::File file;
  file.tensor("q", {1024, 4}, raw::kQ2_0, 0).tensor("next", {8}, raw::kF32, next).data_bytes(next + 32);
  return file;
}

TEST(Placement, Id42IsTheUpstreamLayoutOnly) {
  ASSERT_OK(raw::parse(file_of_42(64, 18).bytes()));
  EXPECT_TRUE(fails_with(raw::parse(file_of_42(128, 34).bytes()), Code::kUnsupported, "'q'",
                         "needs 1152 bytes", "1088", "'next'", "PrismML", "128 weights in 34 bytes"));
  EXPECT_TRUE(fails_with(raw::parse(file_of_42(256, 42).bytes()), Code::kUnsupported, "'q'",
                         "needs 1152 bytes", "672", "'next'", "STQ1_0", "256 weights in 42 bytes"));
  EXPECT_TRUE(fails_with(raw::parse(file_of_42(64, 20).bytes()), Code::kUnsupported, "'q'",
                         "needs 1152 bytes", "1280", "no known layout"));
}

TEST(Placement, Id42AtTheEndOfTheFile) {
  const auto file = [](uint64_t n_bytes) {
    return raw::File().tensor("q", {1024, 3}, raw::kQ2_0, 0).data_bytes(n_bytes).bytes();
  };
  // 864 bytes, a multiple of 32; with 816 (padded to 832) and 504 (512) for the other two.
  ASSERT_OK(raw::parse(file(864)));
  EXPECT_TRUE(fails_with(raw::parse(file(816)), Code::kUnsupported, "'q'", "needs 864", "816", "PrismML"));
  EXPECT_TRUE(fails_with(raw::parse(file(832)), Code::kUnsupported, "'q'", "needs 864", "832", "PrismML"));
  EXPECT_TRUE(fails_with(raw::parse(file(504)), Code::kUnsupported, "'q'", "needs 864", "504", "STQ1_0"));
  EXPECT_TRUE(fails_with(raw::parse(file(512)), Code::kUnsupported, "'q'", "needs 864", "512", "STQ1_0"));
  EXPECT_TRUE(
      fails_with(raw::parse(file(900)), Code::kUnsupported, "'q'", "needs 864", "900", "no known layout"));

  const auto small = [](uint64_t n_bytes) {
    return raw::File().tensor("q", {64}, raw::kQ2_0, 0).data_bytes(n_bytes).bytes();
  };
  ASSERT_OK(raw::parse(small(18)));
  ASSERT_OK(raw::parse(small(32)));
  EXPECT_FALSE(raw::parse(small(17)).has_value());
}

TEST(Placement, OtherTypesMayHaveRoomToSpare) {
  raw::File file;
  file.tensor("q", {1024, 4}, raw::kQ8_0, 0).tensor("next", {8}, raw::kF32, 8192).data_bytes(8192 + 4096);
  ASSERT_OK(raw::parse(file.bytes()));
}

TEST(Placement, OffsetsBeyond4GiBLoad) {
  const TemporaryDirectory directory;
  const Path path = directory / "large.gguf";
  // 5 GiB of zeros that take no disk space, then a tensor with content.
  constexpr uint64_t kFar = 5ull << 30;
  raw::File file;
  file.tensor("large", {1ull << 30, 1}, raw::kF32, 0).tensor("small", {4}, raw::kF32, kFar);
  const std::string headers = file.bytes();
  std::ofstream(path, std::ios::binary) << headers;
  const uint64_t small_offset = headers.size() + kFar;
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(small_offset)), 0);
  std::ofstream(path, std::ios::binary | std::ios::app) << "sixteen bytes...";
  ASSERT_EQ(std::filesystem::file_size(path), small_offset + 16);

  const std::unique_ptr<Storage> storage = make_posix_storage();
  const Result<GgufFile> opened = GgufFile::open(*storage, path);
  ASSERT_OK(opened);
  const TensorInfo* large = opened->find("large");
  const TensorInfo* small = opened->find("small");
  ASSERT_NE(large, nullptr);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(large->bytes, 4ull << 30);
  EXPECT_EQ(opened->bytes(*large).back(), std::byte{0});
  EXPECT_EQ(small->offset, small_offset);
  const std::span<const std::byte> bytes = opened->bytes(*small);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "sixteen bytes...");

  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(small_offset + 15)), 0);
  EXPECT_TRUE(fails_with(GgufFile::open(*storage, path), Code::kCorrupt, "large.gguf", "'small'",
                         "needs 16 bytes", std::to_string(small_offset + 15)));
}

}  // namespace
}  // namespace forebay
