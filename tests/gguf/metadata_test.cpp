#include <gtest/gtest.h>

#include "gguf/gguf.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

GgufMetadata some_metadata() {
  GgufMetadata metadata;
  metadata.set("u32", GgufValue::u32(7));
  metadata.set("i32", GgufValue::i32(7));
  metadata.set("negative", GgufValue::i32(-7));
  metadata.set("big", GgufValue::u64(UINT64_MAX));
  metadata.set("f32", GgufValue::f32(0.5f));
  metadata.set("true", GgufValue::boolean(true));
  metadata.set("text", GgufValue::string("hello"));
  metadata.set("equal", GgufValue::u32_array({4, 4, 4}));
  metadata.set("differ", GgufValue::u32_array({4, 5}));
  metadata.set("empty", GgufValue::u32_array({}));
  metadata.set("signed", GgufValue::i32_array({1, -1}));
  metadata.set("floats", GgufValue::f32_array({0.5, 0.25}));
  metadata.set("flags", GgufValue::bool_array({true, false}));
  metadata.set("same flags", GgufValue::bool_array({true, true}));
  metadata.set("words", GgufValue::string_array({"a", "b"}));
  metadata.set("one word", GgufValue::string_array({"a"}));
  return metadata;
}

TEST(Metadata, IntegersOfAnyWidthAndSign) {
  const GgufMetadata metadata = some_metadata();
  EXPECT_EQ(*metadata.get_uint("u32"), 7u);
  EXPECT_EQ(*metadata.get_uint("i32"), 7u);
  EXPECT_EQ(*metadata.get_int("u32"), 7);
  EXPECT_EQ(*metadata.get_int("negative"), -7);
  EXPECT_EQ(*metadata.get_uint("big"), UINT64_MAX);
  EXPECT_TRUE(fails_with(metadata.get_uint("negative"), Code::kCorrupt, "'negative'", "-7", "0 or more"));
  EXPECT_TRUE(fails_with(metadata.get_int("big"), Code::kCorrupt, "'big'", "18446744073709551615"));
}

TEST(Metadata, NumbersAndBools) {
  const GgufMetadata metadata = some_metadata();
  EXPECT_EQ(*metadata.get_float("f32"), 0.5);
  EXPECT_EQ(*metadata.get_float("u32"), 7.0);
  EXPECT_EQ(*metadata.get_float("negative"), -7.0);
  EXPECT_TRUE(fails_with(metadata.get_uint("f32"), Code::kCorrupt, "'f32'", "0.5"));
  EXPECT_TRUE(*metadata.get_bool("true"));
  EXPECT_TRUE(fails_with(metadata.get_bool("u32"), Code::kCorrupt, "'u32'", "7", "true or false"));
  EXPECT_TRUE(fails_with(metadata.get_float("text"), Code::kCorrupt, "'text'", "string", "a number"));
  GgufMetadata numbers;
  numbers.set("zero", GgufValue::u32(0));
  numbers.set("one", GgufValue::i32(1));
  EXPECT_FALSE(*numbers.get_bool("zero"));
  EXPECT_TRUE(*numbers.get_bool("one"));
}

TEST(Metadata, ScalarsAndArraysStandInForEachOther) {
  const GgufMetadata metadata = some_metadata();
  EXPECT_EQ(*metadata.get_uints("u32"), std::vector<uint64_t>{7});
  EXPECT_EQ(*metadata.get_uint("equal"), 4u);
  EXPECT_TRUE(fails_with(metadata.get_uint("differ"), Code::kCorrupt, "'differ'", "[4, 5]"));
  EXPECT_TRUE(fails_with(metadata.get_uint("empty"), Code::kCorrupt, "'empty'"));
  EXPECT_TRUE(metadata.get_uints("empty")->empty());
  EXPECT_EQ(*metadata.get_ints("signed"), (std::vector<int64_t>{1, -1}));
  EXPECT_TRUE(fails_with(metadata.get_uints("signed"), Code::kCorrupt, "'signed'"));
  EXPECT_EQ(*metadata.get_ints("flags"), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(*metadata.get_floats("floats"), (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(*metadata.get_floats("signed"), (std::vector<double>{1, -1}));
  EXPECT_TRUE(*metadata.get_bool("same flags"));
  EXPECT_FALSE(metadata.get_bool("flags").has_value());
}

TEST(Metadata, Strings) {
  const GgufMetadata metadata = some_metadata();
  EXPECT_EQ(*metadata.get_string("text"), "hello");
  EXPECT_EQ(*metadata.get_string("one word"), "a");
  EXPECT_FALSE(metadata.get_string("words").has_value());
  EXPECT_TRUE(fails_with(metadata.get_string("u32"), Code::kCorrupt, "'u32'", "a string"));
  const auto words = metadata.get_strings("words");
  ASSERT_OK(words);
  EXPECT_EQ(words->size(), 2u);
  EXPECT_EQ((*words)[1], "b");
  ASSERT_OK(metadata.get_strings("text"));
  EXPECT_EQ(metadata.get_strings("text")->front(), "hello");
  EXPECT_TRUE(metadata.get_strings("empty")->empty());
  EXPECT_FALSE(metadata.get_strings("differ").has_value());
}

TEST(Metadata, MissingKeysAreNamed) {
  const GgufMetadata metadata = some_metadata();
  EXPECT_TRUE(fails_with(metadata.get_uint("absent"), Code::kNotFound, "'absent'"));
  EXPECT_TRUE(fails_with(metadata.get_uints("absent"), Code::kNotFound, "'absent'"));
  EXPECT_TRUE(fails_with(metadata.get_strings("absent"), Code::kNotFound, "'absent'"));
}

TEST(Metadata, FallbacksCoverAbsenceOnly) {
  const GgufMetadata metadata = some_metadata();
  EXPECT_EQ(*metadata.get_uint_or("absent", 3), 3u);
  EXPECT_EQ(*metadata.get_uint_or("u32", 3), 7u);
  EXPECT_EQ(*metadata.get_float_or("absent", 0.25), 0.25);
  EXPECT_TRUE(*metadata.get_bool_or("absent", true));
  EXPECT_EQ(*metadata.get_string_or("absent", "x"), "x");
  EXPECT_TRUE(fails_with(metadata.get_uint_or("text", 3), Code::kCorrupt, "'text'"));
}

TEST(Metadata, SetReplacesInPlace) {
  GgufMetadata metadata = some_metadata();
  const size_t n_entries = metadata.entries().size();
  metadata.set("u32", GgufValue::u32(8));
  EXPECT_EQ(metadata.entries().size(), n_entries);
  EXPECT_EQ(metadata.entries()[0].first, "u32");
  EXPECT_EQ(*metadata.get_uint("u32"), 8u);
}

}  // namespace
}  // namespace forebay
