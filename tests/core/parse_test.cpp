#include "core/parse.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay {
namespace {

TEST(Split, KeepsEmptyItems) {
  using Items = std::vector<std::string_view>;
  EXPECT_EQ(split("a,b"), (Items{"a", "b"}));
  EXPECT_EQ(split(""), (Items{""}));
  EXPECT_EQ(split(",a,"), (Items{"", "a", ""}));
  EXPECT_EQ(split("a:b,c", ':'), (Items{"a", "b,c"}));
}

TEST(LinesOf, HaveNoEnds) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines_of(""), Lines());
  EXPECT_EQ(lines_of("a"), Lines{"a"});
  EXPECT_EQ(lines_of("a\n\nb\n"), (Lines{"a", "", "b"}));
}

TEST(ParseBytes, ReadsUnits) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"4096B", 4096},
      {"1k", 1024},
      {"512M", 512ull << 20},
      {"8G", 8ull << 30},
      {"8g", 8ull << 30},
      {"8 GiB", 8ull << 30},
      {"1.5GiB", 3ull << 29},
      {"0.5M", 1ull << 19},
      {"2T", 2ull << 40},
      {"1kB", 1000},
      {"1.5GB", 1'500'000'000},
      {"18446744073709551615", UINT64_MAX},
      {"9007199254740993", 9007199254740993},  // not a double
  };
  for (const auto& [text, bytes] : cases) {
    const Result<uint64_t> parsed = parse_bytes(text);
    ASSERT_OK(parsed) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ParseBytes, RefusesWhatIsNotASize) {
  for (const char* text : {"", " ", "G", "-1", "-0", "+1", "8X", "8GG", "8Gi", "8iB", "8  G", " 8G", "8G ",
                           "1e3", "inf", "nan", "0x10", "1,5G", "eight"})
    EXPECT_TRUE(
        fails_with(parse_bytes(text), Code::kInvalidArgument, std::string("'") + text + "'", "1.5GiB"))
        << text;
}

TEST(ParseBytes, RefusesMoreThan64Bits) {
  for (const char* text : {"18446744073709551616", "16777216T", "99999999999999999999999G"})
    EXPECT_TRUE(fails_with(parse_bytes(text), Code::kInvalidArgument, text, "64 bits")) << text;
  EXPECT_OK(parse_bytes("16777215T"));
}

TEST(ParseInt, ReadsWholeNumbersInRange) {
  EXPECT_EQ(*parse_int("42"), 42);
  EXPECT_EQ(*parse_int("-7"), -7);
  EXPECT_EQ(*parse_int("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(*parse_int("1", 1, 8), 1);
  EXPECT_EQ(*parse_int("8", 1, 8), 8);
}

TEST(ParseInt, RefusesTheRestByNameAndRange) {
  for (const char* text : {"", "x", "1x", " 1", "1 ", "1.0", "+1", "0x1"})
    EXPECT_TRUE(fails_with(parse_int(text), Code::kInvalidArgument, "whole number")) << text;
  EXPECT_TRUE(fails_with(parse_int("9", 1, 8), Code::kInvalidArgument, "9", "1 to 8"));
  EXPECT_TRUE(fails_with(parse_int("0", 1, 8), Code::kInvalidArgument, "0", "1 to 8"));
  EXPECT_TRUE(fails_with(parse_int("9223372036854775808"), Code::kInvalidArgument, "out of range"));
}

TEST(ParseDouble, ReadsFiniteNumbersInRange) {
  EXPECT_EQ(*parse_double("0.7"), 0.7);
  EXPECT_EQ(*parse_double("-1e-3"), -1e-3);
  EXPECT_EQ(*parse_double("1", 0, 1), 1.0);
  for (const char* text : {"", "x", "1x", "nan", "inf", "1,5"})
    EXPECT_TRUE(fails_with(parse_double(text), Code::kInvalidArgument, "not a number")) << text;
  EXPECT_TRUE(fails_with(parse_double("1.5", 0, 1), Code::kInvalidArgument, "1.5", "0 to 1"));
  EXPECT_TRUE(fails_with(parse_double("1e999"), Code::kInvalidArgument, "out of range"));
}

}  // namespace
}  // namespace forebay
