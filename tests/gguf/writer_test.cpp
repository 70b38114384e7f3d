#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gguf/gguf.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

using enum GgufType;

struct Tensor {
  std::string name;
  DType type;
  std::vector<uint64_t> ne;
  std::vector<std::byte> bytes;
};

class WriteGguf : public testing::Test {
 protected:
  WriteGguf() : storage_(make_posix_storage()) {}

  /// Of a new path_ each time: two at work may not share one.
  GgufWriter writer() {
    path_ = directory_ / fmt::format("out-{}.gguf", ++n_writers_);
    Result<GgufWriter> created = GgufWriter::create(*storage_, path_);
    EXPECT_OK(created);
    return *std::move(created);
  }

  /// Writes, reads back, and compares everything.
  void round_trip(const GgufMetadata& metadata, const std::vector<Tensor>& tensors, size_t piece_bytes) {
    GgufWriter out = writer();
    for (const auto& [key, value] : metadata.entries()) out.set(key, value);
    for (const Tensor& tensor : tensors) ASSERT_OK(out.declare(tensor.name, tensor.type, tensor.ne));
    ASSERT_OK(out.write_headers());
    for (const Tensor& tensor : tensors)
      for (size_t at = 0; at < tensor.bytes.size(); at += piece_bytes)
        ASSERT_OK(out.write_data(
            std::span(tensor.bytes).subspan(at, std::min(piece_bytes, tensor.bytes.size() - at))));
    ASSERT_OK(out.finish());

    const Result<GgufFile> file = GgufFile::open(*storage_, path_);
    ASSERT_OK(file);
    EXPECT_EQ(file->version(), 3u);
    EXPECT_EQ(file->metadata().entries(), metadata.entries());
    ASSERT_EQ(file->tensors().size(), tensors.size());
    const uint64_t alignment = *metadata.get_uint_or("general.alignment", 32);
    EXPECT_EQ(file->file_bytes() % alignment, 0u);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorInfo& read = file->tensors()[i];
      EXPECT_EQ(read.name, tensors[i].name);
      EXPECT_EQ(read.type, tensors[i].type);
      EXPECT_EQ(std::vector<uint64_t>(read.ne.begin(), read.ne.begin() + read.n_dims), tensors[i].ne);
      EXPECT_EQ(read.offset % alignment, 0u);
      const std::span<const std::byte> bytes = file->bytes(read);
      EXPECT_EQ(std::vector<std::byte>(bytes.begin(), bytes.end()), tensors[i].bytes);
    }
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Storage> storage_;
  int n_writers_ = 0;
  Path path_;
};

std::vector<std::byte> random_bytes(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

GgufMetadata every_type() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  GgufMetadata metadata;
  metadata.set("u8", {kU8, kU32, uint64_t{255}});
  metadata.set("i8", {kI8, kU32, int64_t{-128}});
  metadata.set("u16", {kU16, kU32, uint64_t{65535}});
  metadata.set("i16", {kI16, kU32, int64_t{-32768}});
  metadata.set("u32", GgufValue::u32(UINT32_MAX));
  metadata.set("i32", GgufValue::i32(INT32_MIN));
  metadata.set("f32", GgufValue::f32(1.5e-42f));  // subnormal
  metadata.set("f32 infinity", GgufValue::f32(-std::numeric_limits<float>::infinity()));
  metadata.set("bool", GgufValue::boolean(false));
  metadata.set("string", GgufValue::string("zero \0 inside, caf\xc3\xa9, \xff"));
  metadata.set("empty string", GgufValue::string(""));
  metadata.set("u64", GgufValue::u64(UINT64_MAX));
  metadata.set("i64", {kI64, kU32, INT64_MIN});
  metadata.set("f64", {kF64, kU32, 0.1});
  metadata.set("\xe9\x8d\xb5 \xf0\x9f\x94\x91", GgufValue::string("\xe6\xb0\xb4"));  // a key in Unicode
  metadata.set("u8s", {kArray, kU8, GgufArray(std::vector<uint64_t>{0, 255})});
  metadata.set("i8s", {kArray, kI8, GgufArray(std::vector<int64_t>{-128, 127})});
  metadata.set("u16s", {kArray, kU16, GgufArray(std::vector<uint64_t>{65535})});
  metadata.set("i16s", {kArray, kI16, GgufArray(std::vector<int64_t>{-1})});
  metadata.set("u32s", GgufValue::u32_array({1, 2, UINT32_MAX}));
  metadata.set("i32s", GgufValue::i32_array({INT32_MIN, INT32_MAX}));
  metadata.set("u64s", GgufValue::u64_array({UINT64_MAX}));
  metadata.set("i64s", {kArray, kI64, GgufArray(std::vector<int64_t>{INT64_MIN})});
  metadata.set("f32s", GgufValue::f32_array({0.5, -0.0, kInfinity}));
  metadata.set("f64s", {kArray, kF64, GgufArray(std::vector<double>{0.1, 1e300})});
  metadata.set("bools", GgufValue::bool_array({true, false, true}));
  metadata.set("strings", GgufValue::string_array({"", "a", "\xf0\x9f\x98\x80"}));
  metadata.set("no u32s", GgufValue::u32_array({}));
  metadata.set("no bools", GgufValue::bool_array({}));
  metadata.set("no strings", GgufValue::string_array({}));
  return metadata;
}

TEST_F(WriteGguf, RoundTripsEveryTypeInPiecesOfAnySize) {
  const std::vector<Tensor> tensors = {
      {"f32", DType::kF32, {3}, random_bytes(12, 1)},
      {"q8_0", DType::kQ8_0, {64, 3}, random_bytes(2 * 34 * 3, 2)},
      {"q4_k.\xc3\xa9", DType::kQ4_K, {256, 2, 3}, random_bytes(144 * 6, 3)},
      {"bf16", DType::kBF16, {5, 1, 2, 2}, random_bytes(40, 4)},
      {"q2_0", DType::kQ2_0, {64}, random_bytes(18, 5)},
  };
  for (const size_t piece_bytes : {1, 7, 1000}) round_trip(every_type(), tensors, piece_bytes);
}

TEST_F(WriteGguf, RoundTripsOtherAlignments) {
  for (const uint32_t alignment : {8u, 64u, 16384u}) {
    GgufMetadata metadata;
    metadata.set("general.alignment", GgufValue::u32(alignment));
    round_trip(metadata,
               {{"a", DType::kF32, {3}, random_bytes(12, 1)}, {"b", DType::kI8, {1}, random_bytes(1, 2)}}, 5);
  }
}

TEST_F(WriteGguf, RoundTripsNothing) {
  round_trip({}, {}, 1);
  round_trip(every_type(), {}, 1);
}

TEST_F(WriteGguf, ReplacesAKeySetTwice) {
  GgufWriter out = writer();
  out.set("k", GgufValue::u32(1));
  out.set("k", GgufValue::string("two"));
  ASSERT_OK(out.write_headers());
  ASSERT_OK(out.finish());
  const Result<GgufFile> file = GgufFile::open(*storage_, path_);
  ASSERT_OK(file);
  EXPECT_EQ(*file->metadata().get_string("k"), "two");
}

TEST_F(WriteGguf, NothingAppearsBeforeFinish) {
  {
    GgufWriter out = writer();
    ASSERT_OK(out.write_headers());
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(WriteGguf, RefusesTensorsThatReadersWouldRefuse) {
  const auto declare = [&](const std::string& name, DType type, std::vector<uint64_t> ne) {
    return writer().declare(name, type, ne);
  };
  EXPECT_TRUE(
      fails_with(declare("t", DType::kF32, {}), Code::kInvalidArgument, "out-1.gguf", "'t'", "0 dimensions"));
  EXPECT_TRUE(
      fails_with(declare("t", DType::kF32, {1, 1, 1, 1, 1}), Code::kInvalidArgument, "'t'", "5 dimensions"));
  EXPECT_TRUE(fails_with(declare("t", DType::kF32, {4, 0}), Code::kInvalidArgument, "'t'", "[4, 0]"));
  EXPECT_TRUE(fails_with(declare("t", DType::kQ8_0, {33}), Code::kInvalidArgument, "'t'", "multiple of 32"));
  EXPECT_TRUE(fails_with(declare("t", DType::kF32, {UINT64_MAX, 2}), Code::kInvalidArgument, "'t'", "2^63"));
  EXPECT_TRUE(fails_with(declare("", DType::kF32, {1}), Code::kInvalidArgument, "0 bytes"));
  EXPECT_TRUE(
      fails_with(declare(std::string(64, 'n'), DType::kF32, {1}), Code::kInvalidArgument, "64 bytes"));
  GgufWriter out = writer();
  const uint64_t ne[] = {1};
  ASSERT_OK(out.declare("t", DType::kF32, ne));
  EXPECT_TRUE(fails_with(out.declare("t", DType::kF32, ne), Code::kInvalidArgument, "'t'", "twice"));
  EXPECT_TRUE(fails_with(out.write_headers(), Code::kInvalidArgument, "'t'", "twice")) << "an error stays";

  GgufWriter huge = writer();
  const uint64_t half[] = {1ull << 60};
  ASSERT_OK(huge.declare("one", DType::kF32, half));
  ASSERT_OK(huge.declare("two", DType::kF32, half));
  EXPECT_TRUE(fails_with(huge.write_headers(), Code::kInvalidArgument, "'two'", "2^63"));
}

TEST_F(WriteGguf, RefusesValuesOutsideTheirType) {
  const auto write = [&](GgufValue value) {
    GgufWriter out = writer();
    out.set("k", std::move(value));
    return out.write_headers();
  };
  EXPECT_TRUE(fails_with(write({kU8, kU32, uint64_t{256}}), Code::kInvalidArgument, "'k'", "u8"));
  EXPECT_TRUE(fails_with(write({kI16, kU32, int64_t{40000}}), Code::kInvalidArgument, "'k'", "i16"));
  EXPECT_TRUE(fails_with(write({kF32, kU32, 1e300}), Code::kInvalidArgument, "'k'", "f32"));
  EXPECT_TRUE(fails_with(write({kString, kU32, uint64_t{1}}), Code::kInvalidArgument, "'k'", "string"));
  EXPECT_TRUE(fails_with(write({kU32, kU32, GgufArray()}), Code::kInvalidArgument, "'k'", "u32"));
  EXPECT_TRUE(fails_with(write(GgufValue::u32_array({1ull << 32})), Code::kInvalidArgument, "'k'", "array"));
  GgufWriter out = writer();
  out.set("general.alignment", GgufValue::u32(12));
  EXPECT_TRUE(fails_with(out.write_headers(), Code::kInvalidArgument, "general.alignment", "12"));
  GgufWriter long_key = writer();
  long_key.set(std::string(65536, 'k'), GgufValue::u32(1));
  EXPECT_TRUE(fails_with(long_key.write_headers(), Code::kInvalidArgument, "65536"));
}

class WriteOrder : public WriteGguf {
 protected:
  /// Two tensors of 16 bytes, declared.
  GgufWriter declared() {
    GgufWriter out = writer();
    const uint64_t ne[] = {4};
    EXPECT_OK(out.declare("a", DType::kF32, ne));
    EXPECT_OK(out.declare("b", DType::kF32, ne));
    return out;
  }
  static constexpr std::byte kBytes[32]{};
};

TEST_F(WriteOrder, DataFollowsTheHeaders) {
  GgufWriter early = declared();
  EXPECT_TRUE(fails_with(early.write_data({kBytes, 16}), Code::kInvalidArgument, "before the headers"));
  GgufWriter unfinished = declared();
  EXPECT_TRUE(fails_with(unfinished.finish(), Code::kInvalidArgument, "before the headers"));
  GgufWriter twice = declared();
  ASSERT_OK(twice.write_headers());
  EXPECT_TRUE(fails_with(twice.write_headers(), Code::kInvalidArgument, "twice"));
}

TEST_F(WriteOrder, HeadersAreFinal) {
  GgufWriter out = declared();
  ASSERT_OK(out.write_headers());
  const uint64_t ne[] = {4};
  EXPECT_TRUE(
      fails_with(out.declare("c", DType::kF32, ne), Code::kInvalidArgument, "'c'", "after the headers"));
  GgufWriter set_late = declared();
  ASSERT_OK(set_late.write_headers());
  set_late.set("late", GgufValue::u32(1));
  EXPECT_TRUE(
      fails_with(set_late.write_data({kBytes, 16}), Code::kInvalidArgument, "'late'", "after the headers"));
}

TEST_F(WriteOrder, TensorsGetExactlyTheirBytes) {
  GgufWriter too_much = declared();
  ASSERT_OK(too_much.write_headers());
  EXPECT_TRUE(
      fails_with(too_much.write_data({kBytes, 17}), Code::kInvalidArgument, "'a'", "17 bytes", "16 of 16"));

  GgufWriter too_little = declared();
  ASSERT_OK(too_little.write_headers());
  ASSERT_OK(too_little.write_data({kBytes, 10}));
  EXPECT_TRUE(
      fails_with(too_little.finish(), Code::kInvalidArgument, "'a'", "10 of 16", "1 tensors after it"));

  GgufWriter one_too_many = declared();
  ASSERT_OK(one_too_many.write_headers());
  ASSERT_OK(one_too_many.write_data({kBytes, 16}));
  ASSERT_OK(one_too_many.write_data({kBytes, 16}));
  EXPECT_TRUE(fails_with(one_too_many.write_data({kBytes, 1}), Code::kInvalidArgument, "last of 2 tensors"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(WriteOrder, FinishedIsFinished) {
  GgufWriter out = declared();
  ASSERT_OK(out.write_headers());
  ASSERT_OK(out.write_data({kBytes, 16}));
  ASSERT_OK(out.write_data({}));
  ASSERT_OK(out.write_data({kBytes, 16}));
  ASSERT_OK(out.finish());
  EXPECT_TRUE(fails_with(out.finish(), Code::kInvalidArgument, "finished already"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace forebay
