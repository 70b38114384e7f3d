#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "gguf/gguf.h"
#include "raw_gguf.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

using enum GgufType;
using raw::le;
using raw::text;

TEST(ParseGguf, ReadsEveryValueType) {
  const Result<GgufHeaders> headers = raw::parse(raw::small_file().bytes());
  ASSERT_OK(headers);
  const GgufMetadata& metadata = headers->metadata;
  EXPECT_EQ(metadata.entries().size(), 16u);
  const auto data = [&](const char* key) { return metadata.find(key)->data; };
  using Data = decltype(GgufValue::data);
  EXPECT_EQ(data("general.architecture"), Data(std::string("tiny")));
  EXPECT_EQ(data("u8"), Data(uint64_t{200}));
  EXPECT_EQ(data("i8"), Data(int64_t{-100}));
  EXPECT_EQ(data("u16"), Data(uint64_t{60000}));
  EXPECT_EQ(data("i16"), Data(int64_t{-30000}));
  EXPECT_EQ(data("u32"), Data(uint64_t{4000000000}));
  EXPECT_EQ(data("i32"), Data(int64_t{-2000000000}));
  EXPECT_EQ(data("f32"), Data(double{0.1f}));
  EXPECT_EQ(data("bool"), Data(true));
  EXPECT_EQ(data("u64"), Data(UINT64_MAX));
  EXPECT_EQ(data("i64"), Data(INT64_MIN));
  EXPECT_EQ(data("f64"), Data(0.1));
  EXPECT_EQ(data("numbers"), Data(GgufArray(std::vector<int64_t>{1, -2, 3})));
  EXPECT_EQ(data("flags"), Data(GgufArray(std::vector<bool>{false, true})));
  EXPECT_EQ(data("words"), Data(GgufArray(std::vector<std::string>{"a", "", "caf\xc3\xa9"})));
  EXPECT_EQ(data("none"), Data(GgufArray(std::vector<uint64_t>{})));
  EXPECT_EQ(metadata.find("numbers")->type, kArray);
  EXPECT_EQ(metadata.find("numbers")->element, kI16);
}

TEST(ParseGguf, ReadsTheTensorTable) {
  const raw::File file = raw::small_file();
  const Result<GgufHeaders> headers = raw::parse(file.bytes());
  ASSERT_OK(headers);
  EXPECT_EQ(headers->data_offset, (file.headers().size() + 31) / 32 * 32);
  ASSERT_EQ(headers->tensors.size(), 2u);
  const TensorInfo& a = headers->tensors[0];
  EXPECT_EQ(a.name, "a.weight");
  EXPECT_EQ(a.type, DType::kF32);
  EXPECT_EQ(a.n_dims, 2);
  EXPECT_EQ(a.ne, (std::array<uint64_t, 4>{6, 4, 1, 1}));
  EXPECT_EQ(a.offset, headers->data_offset);
  EXPECT_EQ(a.bytes, 96u);
  EXPECT_EQ(a.n_elements(), 24u);
  EXPECT_EQ(a.n_rows(), 4u);
  EXPECT_EQ(shape_string(a), "[6, 4]");
  const TensorInfo& b = headers->tensors[1];
  EXPECT_EQ(b.type, DType::kQ8_0);
  EXPECT_EQ(b.offset, headers->data_offset + 96);
  EXPECT_EQ(b.bytes, 68u);
}

TEST(ParseGguf, ReadsVersionTwo) {
  raw::File file = raw::small_file();
  file.version = 2;
  const Result<GgufHeaders> headers = raw::parse(file.bytes());
  ASSERT_OK(headers);
  EXPECT_EQ(headers->version, 2u);
  EXPECT_EQ(headers->tensors.size(), 2u);
}

TEST(ParseGguf, RefusesOtherVersionsByNumber) {
  raw::File file = raw::small_file();
  file.version = 1;
  EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kUnsupported, "version 1", "wanted 2 or 3"));
  file.version = 4;
  EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kUnsupported, "version 4", "wanted 2 or 3"));
  file.version = 0x03000000;
  EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kUnsupported, "big-endian", "0x03000000"));
  file.version = 0;
  EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kUnsupported, "version 0"));
}

TEST(ParseGguf, RefusesOtherFilesByTheirFirstBytes) {
  EXPECT_TRUE(fails_with(raw::parse("PK\x03\x04 a zip file"), Code::kCorrupt, "50 4b 03 04", "47 47 55 46"));
  EXPECT_TRUE(fails_with(raw::parse("GG"), Code::kCorrupt, "magic", "needs 4 bytes", "ends at 2"));
  EXPECT_TRUE(fails_with(raw::parse(""), Code::kCorrupt, "ends at 0"));
}

TEST(ParseGguf, EveryTruncationIsAnError) {
  const std::string whole = raw::small_file().bytes();
  ASSERT_OK(raw::parse(whole));
  for (size_t n = 0; n < whole.size(); ++n) {
    // An exact copy, so that a sanitizer sees a read past its end.
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    const Result<GgufHeaders> headers = raw::parse({cut.data(), cut.size()});
    ASSERT_FALSE(headers.has_value()) << n << " of " << whole.size() << " bytes";
    EXPECT_EQ(headers.error().code, Code::kCorrupt) << headers.error().message;
    EXPECT_NE(headers.error().message.find(std::to_string(n)), std::string::npos)
        << "the size, " << n << ", is not in: " << headers.error().message;
  }
}

TEST(ParseGguf, TruncatedTensorsAreNamed) {
  const std::string whole = raw::small_file().bytes();
  const std::string without_b = whole.substr(0, whole.size() - 68);
  EXPECT_TRUE(
      fails_with(raw::parse(without_b), Code::kCorrupt, "'b.weight'", "needs 68 bytes", "the file ends at"));
  EXPECT_TRUE(fails_with(raw::parse(without_b.substr(0, without_b.size() - 96)), Code::kCorrupt, "'a.weight'",
                         "needs 96 bytes", "the file ends at"));
}

TEST(ParseGguf, CountsBeyondTheFileAreRefusedBeforeAllocating) {
  for (const uint64_t count : {uint64_t{1000}, uint64_t{1} << 40, uint64_t{1} << 63, UINT64_MAX}) {
    raw::File file = raw::small_file();
    file.n_tensors = count;
    EXPECT_TRUE(
        fails_with(raw::parse(file.bytes()), Code::kCorrupt, "tensors at offset 8", std::to_string(count)));
    file = raw::small_file();
    file.n_keys = count;
    EXPECT_TRUE(
        fails_with(raw::parse(file.bytes()), Code::kCorrupt, "keys at offset 16", std::to_string(count)));
  }
}

TEST(ParseGguf, LengthsBeyondTheFileNameTheKey) {
  for (const uint64_t n : {uint64_t{1} << 20, uint64_t{1} << 63, UINT64_MAX}) {
    const auto with = [](GgufType type, const std::string& payload) {
      return raw::File().key("some.key", type, payload).bytes();
    };
    EXPECT_TRUE(fails_with(raw::parse(with(kString, le(n) + "abc")), Code::kCorrupt, "'some.key'",
                           std::to_string(n)));
    for (const GgufType element : {kU8, kI16, GgufType::kF32, kU64, kBool, kString})
      EXPECT_TRUE(fails_with(raw::parse(with(kArray, le(element) + le(n) + "abc")), Code::kCorrupt,
                             "'some.key'", std::to_string(n)));
    EXPECT_TRUE(fails_with(raw::parse(with(kArray, le(kString) + le<uint64_t>(2) + text("ok") + le(n))),
                           Code::kCorrupt, "element 1 of 2", "'some.key'", std::to_string(n)));
    raw::File bad_key;
    bad_key.keys = le(n) + "key";
    bad_key.n_keys = 1;
    bad_key.data_bytes(64);
    EXPECT_TRUE(fails_with(raw::parse(bad_key.bytes()), Code::kCorrupt, "key 1 of 1", std::to_string(n)));
    raw::File bad_tensor;
    bad_tensor.tensors = le(n) + "tensor";
    bad_tensor.n_tensors = 1;
    bad_tensor.data_bytes(64);
    EXPECT_TRUE(
        fails_with(raw::parse(bad_tensor.bytes()), Code::kCorrupt, "tensor 1 of 1", std::to_string(n)));
  }
}

TEST(ParseGguf, NamesAreUniqueAndNotEmpty) {
  const std::string one = le<uint32_t>(1);
  raw::File file;
  EXPECT_TRUE(fails_with(raw::parse(file.key("a.b", kU32, one).key("a.b", kU32, one).bytes()), Code::kCorrupt,
                         "'a.b'", "twice"));
  EXPECT_TRUE(fails_with(raw::parse(raw::File().key("", kU32, one).bytes()), Code::kCorrupt, "key 1 of 1",
                         "0 bytes"));
  EXPECT_TRUE(fails_with(raw::parse(raw::File().key(std::string(65536, 'k'), kU32, one).bytes()),
                         Code::kCorrupt, "key 1 of 1", "65536 bytes"));
  ASSERT_OK(raw::parse(raw::File().key(std::string(65535, 'k'), kU32, one).bytes()));

  raw::File twice;
  twice.tensor("t", {8}, raw::kF32, 0).tensor("t", {8}, raw::kF32, 32).data_bytes(64);
  EXPECT_TRUE(fails_with(raw::parse(twice.bytes()), Code::kCorrupt, "tensor 't'", "twice"));
  raw::File unnamed;
  unnamed.tensor("", {8}, raw::kF32, 0).data_bytes(32);
  EXPECT_TRUE(fails_with(raw::parse(unnamed.bytes()), Code::kCorrupt, "tensor 1 of 1", "0 bytes"));
}

TEST(ParseGguf, NamesFromTheFileStayOnOneLine) {
  raw::File file;
  file.tensor("evil\n\x1b[31m\xff name", {8}, raw::kF32, 1).data_bytes(64);
  EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kCorrupt, R"('evil\x0a\x1b[31m\xff name')"));
}

TEST(ParseGguf, UnknownValueTypesAreNumbered) {
  EXPECT_TRUE(fails_with(raw::parse(raw::File().key("k", GgufType{13}, "12345678").bytes()), Code::kCorrupt,
                         "'k'", "value type 13", "0 to 12"));
  EXPECT_TRUE(fails_with(raw::parse(raw::File().key("k", kArray, le<uint32_t>(99) + le<uint64_t>(0)).bytes()),
                         Code::kCorrupt, "'k'", "value type 99"));
  const std::string nested = le(kArray) + le<uint64_t>(1) + le(kU8) + le<uint64_t>(1) + "x";
  EXPECT_TRUE(fails_with(raw::parse(raw::File().key("k", kArray, nested).bytes()), Code::kUnsupported, "'k'",
                         "array of arrays"));
  EXPECT_TRUE(fails_with(raw::parse(raw::File().key("k", kBool, le<uint8_t>(2)).bytes()), Code::kCorrupt,
                         "'k'", "bool 2"));
  EXPECT_TRUE(
      fails_with(raw::parse(raw::File().key("k", kArray, le(kBool) + le<uint64_t>(2) + "\x01\x07").bytes()),
                 Code::kCorrupt, "'k'", "bool 7"));
}

TEST(ParseGguf, AlignmentIsAPowerOfTwo) {
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 33u, 0xffffffffu}) {
    raw::File file;
    file.key("general.alignment", kU32, le(alignment));
    EXPECT_TRUE(fails_with(raw::parse(file.bytes()), Code::kCorrupt, "general.alignment",
                           std::to_string(alignment), "power of two"));
  }
  raw::File text_alignment;
  text_alignment.key("general.alignment", kString, text("32"));
  EXPECT_TRUE(fails_with(raw::parse(text_alignment.bytes()), Code::kCorrupt, "general.alignment"));

  for (const uint64_t alignment : {8, 64, 4096}) {
    raw::File file;
    file.alignment = alignment;
    file.key("general.alignment", kU64, le(alignment))
        .tensor("t", {4}, raw::kF32, alignment)
        .data_bytes(alignment + 16);
    const Result<GgufHeaders> headers = raw::parse(file.bytes());
    ASSERT_OK(headers);
    EXPECT_EQ(headers->data_offset % alignment, 0u);
    EXPECT_EQ(headers->tensors[0].offset, headers->data_offset + alignment);
  }
}

TEST(ParseGguf, FilesWithoutTensorsMayEndBeforeTheDataSection) {
  raw::File file;
  file.key("k", kU8, le<uint8_t>(1));
  ASSERT_OK(raw::parse(file.headers()));
  ASSERT_OK(raw::parse(file.bytes()));
  ASSERT_OK(raw::parse(raw::File().headers()));
}

/// "t", one F32 tensor, with a dimension list of any length.
std::string file_with_dims(uint32_t n_dims) {
  raw::File file;
  file.tensors = text("t") + le(n_dims);
  for (uint32_t i = 0; i < n_dims; ++i) file.tensors += le<uint64_t>(1);
  file.tensors += le(raw::kF32) + le<uint64_t>(0);
  file.n_tensors = 1;
  file.data_bytes(32);
  return file.bytes();
}

TEST(ParseGguf, OneToFourDimensions) {
  for (const uint32_t n : {1u, 2u, 3u, 4u}) ASSERT_OK(raw::parse(file_with_dims(n)));
  for (const uint32_t n : {0u, 5u, 1000u})
    EXPECT_TRUE(fails_with(raw::parse(file_with_dims(n)), Code::kCorrupt, "tensor 't'",
                           std::to_string(n) + " dimensions", "1 to 4"));
}

TEST(ParseGguf, DimensionsWithoutOverflow) {
  const auto with = [](std::initializer_list<uint64_t> ne, uint32_t type) {
    return raw::File().tensor("t", ne, type, 0).data_bytes(64).bytes();
  };
  EXPECT_TRUE(
      fails_with(raw::parse(with({8, 0}, raw::kF32)), Code::kCorrupt, "'t'", "[8, 0]", "dimension 1"));
  EXPECT_TRUE(
      fails_with(raw::parse(with({1ull << 32, 1ull << 32}, raw::kF32)), Code::kCorrupt, "'t'", "2^63"));
  EXPECT_TRUE(fails_with(raw::parse(with({UINT64_MAX}, raw::kF32)), Code::kCorrupt, "'t'", "2^63"));
  EXPECT_TRUE(fails_with(raw::parse(with({1ull << 62}, raw::kF32)), Code::kCorrupt, "'t'", "2^63 - 1 bytes"));
  EXPECT_TRUE(
      fails_with(raw::parse(with({1ull << 33, 1ull << 31}, raw::kF32)), Code::kCorrupt, "'t'", "2^63"));
  EXPECT_TRUE(fails_with(raw::parse(with({1ull << 60}, raw::kF32)), Code::kCorrupt, "'t'",
                         std::to_string(1ull << 62), "the file ends at"));
  EXPECT_TRUE(fails_with(raw::parse(with({40}, raw::kQ8_0)), Code::kCorrupt, "'t'", "[40]", "multiple of 32",
                         "Q8_0"));
}

TEST(ParseGguf, TensorTypesAreKnownOrRefusedByName) {
  const auto with = [](uint32_t type) {
    return raw::File().tensor("t", {256}, type, 0).data_bytes(1024).bytes();
  };
  EXPECT_TRUE(fails_with(raw::parse(with(4)), Code::kUnsupported, "'t'", "type id 4", "Q4_2"));
  EXPECT_TRUE(fails_with(raw::parse(with(33)), Code::kUnsupported, "'t'", "type id 33", "Q4_0_8_8"));
  EXPECT_TRUE(fails_with(raw::parse(with(36)), Code::kUnsupported, "'t'", "type id 36", "IQ4_NL_4_4"));
  for (const uint32_t id : {43u, 142u, 0xffffffffu})
    EXPECT_TRUE(
        fails_with(raw::parse(with(id)), Code::kUnsupported, "'t'", "unknown type id " + std::to_string(id)));
  for (const uint32_t id : {0u, 1u, 2u, 10u, 20u, 30u, 39u, 40u}) ASSERT_OK(raw::parse(with(id)));
}

TEST(ParseGguf, ALargeVocabularyIsFast) {
  constexpr uint64_t kTokens = 150'000;
  std::string tokens = le(kString) + le(kTokens);
  std::string scores = le(GgufType::kF32) + le(kTokens);
  for (uint64_t i = 0; i < kTokens; ++i) {
    tokens += text("token " + std::to_string(i));
    scores += le(static_cast<float>(i));
  }
  raw::File file;
  file.key("tokenizer.ggml.tokens", kArray, tokens)
      .key("tokenizer.ggml.merges", kArray, tokens)
      .key("tokenizer.ggml.scores", kArray, scores);
  const std::string bytes = file.bytes();
  const auto start = std::chrono::steady_clock::now();
  const Result<GgufHeaders> headers = raw::parse(bytes);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_OK(headers);
  EXPECT_EQ(headers->metadata.get_strings("tokenizer.ggml.tokens")->back(), "token 149999");
  EXPECT_LT(seconds.count(), 1.0);
  RecordProperty("seconds", std::to_string(seconds.count()));
}

TEST(ParseGguf, TenTimesTheUsualTensorCountLoads) {
  constexpr uint64_t kTensors = 20'000;
  raw::File file;
  for (uint64_t i = 0; i < kTensors; ++i)
    file.tensor("blk." + std::to_string(i) + ".ffn_down_exps.weight", {8}, raw::kF32, i * 32);
  for (int i = 0; i < 5000; ++i) file.key("some.key." + std::to_string(i), kU32, le<uint32_t>(7));
  file.data_bytes(kTensors * 32);
  const Result<GgufHeaders> headers = raw::parse(file.bytes());
  ASSERT_OK(headers);
  EXPECT_EQ(headers->tensors.size(), kTensors);
  EXPECT_EQ(headers->metadata.entries().size(), 5000u);
  EXPECT_EQ(headers->tensors.back().name, "blk.19999.ffn_down_exps.weight");
}

}  // namespace
}  // namespace forebay
