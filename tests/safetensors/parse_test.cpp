#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "raw_safetensors.h"
#include "safetensors/safetensors.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

TEST(ParseSafetensors, ReadsTheTableInFileOrder) {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("second":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
                             R"("first":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("none":{"dtype":"I64","shape":[0,4],"data_offsets":[20,20]},)"
                             R"("scalar":{"dtype":"BOOL","shape":[],"data_offsets":[20,21]}}  )";
  std::map<std::string, std::string> metadata;
  const auto tensors = raw::parse(raw::file(header, 21), &metadata);
  ASSERT_OK(tensors);
  EXPECT_EQ(metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(tensors->size(), 4u);
  const uint64_t data = 8 + header.size();
  const SafeTensor& second = (*tensors)[1];
  EXPECT_EQ((*tensors)[0].name, "first");
  EXPECT_EQ((*tensors)[0].offset, data);
  EXPECT_EQ(second.name, "second");
  EXPECT_EQ(second.type, SafeType::kBF16);
  EXPECT_EQ(second.shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(second.offset, data + 8);
  EXPECT_EQ(second.bytes, 12u);
  EXPECT_EQ(second.n_elements(), 6u);
  EXPECT_EQ((*tensors)[2].n_elements(), 0u);
  EXPECT_EQ((*tensors)[3].n_elements(), 1u);
}

TEST(ParseSafetensors, EveryType) {
  const auto one = [](const char* dtype, size_t n_bytes) {
    return raw::file(
        fmt::format(R"({{"t":{{"dtype":"{}","shape":[1],"data_offsets":[0,{}]}}}})", dtype, n_bytes),
        n_bytes);
  };
  for (const auto& [dtype, bytes] : std::map<const char*, size_t>{{"F64", 8},
                                                                  {"F32", 4},
                                                                  {"F16", 2},
                                                                  {"BF16", 2},
                                                                  {"F8_E4M3", 1},
                                                                  {"I64", 8},
                                                                  {"I32", 4},
                                                                  {"I16", 2},
                                                                  {"I8", 1},
                                                                  {"U8", 1},
                                                                  {"BOOL", 1}}) {
    const auto tensors = raw::parse(one(dtype, bytes));
    ASSERT_OK(tensors);
    EXPECT_EQ(name_of((*tensors)[0].type), dtype);
    EXPECT_EQ(static_cast<size_t>(bytes_of((*tensors)[0].type)), bytes);
  }
  for (const char* dtype : {"F8_E5M2", "U32", "f32", ""})
    EXPECT_TRUE(fails_with(raw::parse(one(dtype, 4)), Code::kUnsupported, "tensor \"t\"",
                           fmt::format("\"{}\"", dtype), "BF16"));
}

TEST(ParseSafetensors, HeaderLengthIsChecked) {
  EXPECT_TRUE(fails_with(raw::parse("1234567"), Code::kCorrupt, "8 bytes", "ends at 7"));
  EXPECT_TRUE(fails_with(raw::parse(""), Code::kCorrupt, "ends at 0"));
  for (const uint64_t n : {uint64_t{3}, uint64_t{1} << 40, uint64_t{1} << 63, UINT64_MAX})
    EXPECT_TRUE(
        fails_with(raw::parse(raw::file("{}", 0, n)), Code::kCorrupt, std::to_string(n), "ends at 10"));
  ASSERT_OK(raw::parse(raw::file("{}", 0)));
}

TEST(ParseSafetensors, EveryTruncationIsAnError) {
  const std::string whole = raw::file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
                                      11);
  ASSERT_OK(raw::parse(whole));
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_TRUE(fails_with(raw::parse({cut.data(), cut.size()}), Code::kCorrupt, std::to_string(n)));
  }
  EXPECT_TRUE(fails_with(raw::parse(whole + "x"), Code::kCorrupt, "the last tensor ends at"));
}

TEST(ParseSafetensors, JsonErrorsSayWhere) {
  EXPECT_TRUE(fails_with(raw::parse(raw::file("{\"a\": }", 0)), Code::kCorrupt, "header", "byte 7 of 7"));
  EXPECT_TRUE(fails_with(raw::parse(raw::file("{} x", 0)), Code::kCorrupt, "header", "JSON"));
  EXPECT_TRUE(fails_with(raw::parse(raw::file("", 0)), Code::kCorrupt, "header", "JSON"));
  EXPECT_TRUE(fails_with(raw::parse(raw::file("[]", 0)), Code::kCorrupt, "header", "object"));
  EXPECT_TRUE(fails_with(raw::parse(raw::file("{\"\xff\":1}", 0)), Code::kCorrupt, "header", "JSON"));
  EXPECT_TRUE(fails_with(raw::parse(raw::file("{\"a\":1e999}", 0)), Code::kCorrupt, "header", "range"));
  EXPECT_TRUE(
      fails_with(raw::parse(raw::file(std::string(100000, '['), 0)), Code::kCorrupt, "header", "nested"));
}

TEST(ParseSafetensors, DuplicatesAreNamed) {
  EXPECT_TRUE(fails_with(raw::parse(raw::file(R"({"a\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                              R"("a\n":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                              2)),
                         Code::kCorrupt, R"("a\n")", "twice"));
  EXPECT_TRUE(fails_with(
      raw::parse(raw::file(R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1)),
      Code::kCorrupt, "\"dtype\"", "twice"));
}

/// "t" with this entry, and a byte of data.
Result<std::vector<SafeTensor>> parse_entry(std::string_view entry) {
  return raw::parse(raw::file(fmt::format("{{\"t\":{}}}", entry), 1));
}

TEST(ParseSafetensors, EntriesAreComplete) {
  ASSERT_OK(parse_entry(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":"is fine"})"));
  const auto refused = [](std::string_view entry, std::string_view part) {
    return fails_with(parse_entry(entry), Code::kCorrupt, "tensor \"t\"", part);
  };
  EXPECT_TRUE(refused("1", "not an object"));
  EXPECT_TRUE(refused("{}", "\"dtype\""));
  EXPECT_TRUE(refused(R"({"dtype":7,"shape":[1],"data_offsets":[0,1]})", "\"dtype\""));
  EXPECT_TRUE(refused(R"({"dtype":"U8","data_offsets":[0,1]})", "\"shape\""));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})", "\"shape\""));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})", "-1"));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})", "1.0"));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":["1"],"data_offsets":[0,1]})", "1"));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1]})", "\"shape\""));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":[1]})", "\"data_offsets\""));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":[1],"data_offsets":[0]})", "[0]"));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})", "[0, 1, 2]"));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":[1],"data_offsets":[1,0]})", "[1, 0]"));
}

TEST(ParseSafetensors, SizesMatchTypeAndShape) {
  const auto refused = [](std::string_view entry, std::string_view a, std::string_view b) {
    return fails_with(parse_entry(entry), Code::kCorrupt, "tensor \"t\"", a, b);
  };
  EXPECT_TRUE(refused(R"({"dtype":"F32","shape":[1],"data_offsets":[0,1]})", "needs 4 bytes", "have 1"));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":[2,3],"data_offsets":[0,1]})", "[2, 3] needs 6", "have 1"));
  EXPECT_TRUE(refused(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})", "4294967296",
                      "2^63"));
  EXPECT_TRUE(
      refused(R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})", "F64", "2^63"));
}

TEST(ParseSafetensors, TensorsFillTheFileSideBySide) {
  const auto two = [](const char* a, const char* b, size_t n_bytes) {
    return raw::parse(raw::file(fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":{}}},)"
                                            R"("b":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
                                            a, b),
                                n_bytes));
  };
  ASSERT_OK(two("[0,4]", "[4,8]", 8));
  ASSERT_OK(two("[4,8]", "[0,4]", 8));
  EXPECT_TRUE(fails_with(two("[0,4]", "[2,6]", 6), Code::kCorrupt, "\"b\"", "begins at 2", "ends at 4"));
  EXPECT_TRUE(fails_with(two("[0,4]", "[0,4]", 4), Code::kCorrupt, "\"b\"", "begins at 0", "ends at 4"));
  EXPECT_TRUE(fails_with(two("[0,4]", "[6,10]", 10), Code::kCorrupt, "\"b\"", "begins at 6", "ends at 4"));
  EXPECT_TRUE(fails_with(two("[0,4]", "[4,8]", 7), Code::kCorrupt, "\"b\"", "offset 4", "the file ends at"));
  EXPECT_TRUE(fails_with(two("[0,4]", "[18446744073709551611,18446744073709551615]", 8), Code::kCorrupt,
                         "\"b\"", "18446744073709551611", "the file ends at"));
  EXPECT_TRUE(fails_with(two("[0,4]", "[4,8]", 9), Code::kCorrupt, "the last tensor ends at"));
}

TEST(ParseSafetensors, MetadataIsStrings) {
  EXPECT_TRUE(fails_with(raw::parse(raw::file(R"({"__metadata__":{"k":1}})", 0)), Code::kCorrupt,
                         "__metadata__", "\"k\""));
  EXPECT_TRUE(fails_with(raw::parse(raw::file(R"({"__metadata__":[]})", 0)), Code::kCorrupt, "__metadata__"));
}

}  // namespace
}  // namespace forebay
