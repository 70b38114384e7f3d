#include "gguf/describe.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "gguf/text.h"

namespace forebay::gguf {
namespace {

TEST(Describe, Scalars) {
  EXPECT_EQ(value_string(GgufValue::u32(7)), "7");
  EXPECT_EQ(value_string(GgufValue::i32(-7)), "-7");
  EXPECT_EQ(value_string(GgufValue::f32(1e-6f)), "1e-06");
  EXPECT_EQ(value_string(GgufValue::boolean(true)), "true");
  EXPECT_EQ(value_string(GgufValue::string("two\nlines")), R"('two\x0alines')");
  EXPECT_EQ(type_string(GgufValue::u32(7)), "u32");
  EXPECT_EQ(type_string(GgufValue::string_array({"a", "b"})), "string[2]");
}

TEST(Describe, LongValuesAreCut) {
  EXPECT_EQ(value_string(GgufValue::u32_array({1, 2, 3})), "[1, 2, 3]");
  EXPECT_EQ(value_string(GgufValue::u32_array({1, 2, 3}), 2), "[1, 2, ... 3 in all]");
  EXPECT_EQ(value_string(GgufValue::u32_array({1, 2, 3}), 0), "[... 3 in all]");
  EXPECT_EQ(value_string(GgufValue::u32_array({})), "[]");
  EXPECT_LT(value_string(GgufValue::string(std::string(5000, 'x'))).size(), 120u);
}

TEST(Describe, Json) {
  EXPECT_EQ(value_json(GgufValue::string("a \"b\" \\ \n \xff \xe2\x82\xac")),
            "\"a \\\"b\\\" \\\\ \\u000a \xef\xbf\xbd \xe2\x82\xac\"");
  EXPECT_EQ(value_json(GgufValue::f32_array({0.1f, std::numeric_limits<double>::infinity(), std::nan("")})),
            "[0.1, null, null]");
  EXPECT_EQ(value_json(GgufValue::bool_array({true, false})), "[true, false]");
  EXPECT_EQ(value_json(GgufValue::u32_array({1, 2, 3}), 2), "[1, 2]");
  EXPECT_EQ(value_json(GgufValue::string_array({"a", ""})), R"(["a", ""])");
}

TEST(Describe, QuotesWhatIsNotUtf8) {
  EXPECT_EQ(quote("plain"), "'plain'");
  EXPECT_EQ(quote("\xc3\xa9\xf0\x9f\x98\x80"), "'\xc3\xa9\xf0\x9f\x98\x80'");
  EXPECT_EQ(quote("\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82"),
            R"('\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82')");
  EXPECT_EQ(quote(std::string(200, 'x'), 10), "'xxxxxxxxxx...'");
}

}  // namespace
}  // namespace forebay::gguf
