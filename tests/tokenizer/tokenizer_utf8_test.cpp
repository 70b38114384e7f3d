#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "replaced.h"
#include "tokenizer/byte_map.h"
#include "tokenizer/utf8.h"

namespace forebay {
namespace {

TEST(Utf8, EveryCodePointSurvivesEncodingAndDecoding) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    std::string bytes;
    utf8::append(bytes, c);
    utf8::Char read = utf8::first_char(bytes);
    bool surrogate = c >= 0xD800 && c < 0xE000;
    ASSERT_EQ(read.status == utf8::Status::kValid, !surrogate) << c;
    if (surrogate) continue;
    ASSERT_EQ(read.code_point, c);
    ASSERT_EQ(read.n_bytes, bytes.size());
    for (size_t n = 1; n < bytes.size(); ++n) {
      utf8::Char cut = utf8::first_char(std::string_view(bytes).substr(0, n));
      ASSERT_EQ(cut.status, utf8::Status::kTruncated) << c;
      ASSERT_EQ(cut.n_bytes, n) << c;
    }
  }
}

// The expectations are those of Python's bytes.decode("utf-8", "replace"), R for U+FFFD.
TEST(Utf8, EveryMaximalPrefixOfAWrongSequenceIsReplacedOnce) {
  using namespace std::string_literals;
  const std::pair<std::string, std::string> cases[] = {
      {"\xff", "R"},
      {"\x80\x80", "RR"},
      {"\xc3(", "R("},
      {"\xc0\xaf", "RR"},
      {"\xe2\x82", "R"},
      {"\xe2\x82(", "R("},
      {"\xe0\x80\x80", "RRR"},
      {"\xed\xa0\x80", "RRR"},
      {"\xf0\x9f\x98", "R"},
      {"\xf0\x9f\x98\xf0\x9f\x98\x80", "R\xf0\x9f\x98\x80"},
      {"\xf4\x90\x80\x80", "RRRR"},
      {"\xf5\x80", "RR"},
      {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "RRRRA"},
      {"plain text, long enough for words\xff", "plain text, long enough for wordsR"},
      {"\0\xc3\xa9\0"s, "\0\xc3\xa9\0"s},
      {"", ""},
  };
  for (const auto& [bytes, wanted] : cases) {
    std::string expected;
    for (char c : wanted) expected += c == 'R' ? "\xEF\xBF\xBD" : std::string(1, c);
    EXPECT_EQ(replaced(bytes), expected);
    EXPECT_EQ(utf8::valid_prefix_bytes(bytes) == bytes.size(), bytes == expected);
  }
}

TEST(ByteMap, IsOneToOneAndKnowsItsAnchors) {
  EXPECT_EQ(character_of_byte(' '), 0x120u);
  EXPECT_EQ(character_of_byte('\n'), 0x10Au);
  EXPECT_EQ(character_of_byte('\t'), 0x109u);
  EXPECT_EQ(character_of_byte('!'), uint32_t{'!'});
  EXPECT_EQ(character_of_byte(0xAD), 0x143u);
  EXPECT_EQ(character_of_byte(0xFF), 0xFFu);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(from_byte_alphabet(to_byte_alphabet(all)), all);
  EXPECT_FALSE(byte_of_character(' '));
  EXPECT_FALSE(byte_of_character(0xAD));
  EXPECT_FALSE(byte_of_character(0x144));
  EXPECT_FALSE(from_byte_alphabet("a b"));
  EXPECT_FALSE(from_byte_alphabet("a\xff"));
}

}  // namespace
}  // namespace forebay
