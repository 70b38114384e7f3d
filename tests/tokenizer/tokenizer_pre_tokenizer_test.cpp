#include <algorithm>
#include <string>
#include <vector>

#include "support/result_matchers.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/utf8.h"

namespace forebay {
namespace {

PreTokenizer make(std::string_view name) {
  return PreTokenizer::create(**find_pre_tokenizer_rules(name)).value();
}

using Pieces = std::vector<std::string>;

Pieces split(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Pieces pieces;
  pre_tokenizer.split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

Pieces split(std::string_view name, std::string_view text) {
  return split(make(name), text);
}

TEST(PreTokenizer, Qwen2CutsAsWritten) {
  EXPECT_EQ(split("qwen2", ""), Pieces{});
  EXPECT_EQ(split("qwen2", "I'm you'LL it's'"), (Pieces{"I", "'m", " you", "'LL", " it", "'s", "'"}));
  EXPECT_EQ(split("qwen2", "x1234"), (Pieces{"x", "1", "2", "3", "4"}));
  EXPECT_EQ(split("qwen2", "a  b\n\n  c  \n\n x  "),
            (Pieces{"a", " ", " b", "\n\n", " ", " c", "  \n\n", " x", "  "}));
  EXPECT_EQ(split("qwen2", "f(x);\r\n\r\n y"), (Pieces{"f", "(x", ");\r\n\r\n", " y"}));
  EXPECT_EQ(split("qwen2", "it'\u017F"), (Pieces{"it", "'\u017F"}));
}

TEST(PreTokenizer, Qwen35KeepsMarksInWords) {
  EXPECT_EQ(split("qwen2", "न\u094D\u0928!"), (Pieces{"न", "\u094D\u0928", "!"}));
  EXPECT_EQ(split("qwen35", "न\u094D\u0928!"), (Pieces{"न\u094D\u0928", "!"}));
  EXPECT_EQ(split("qwen2", "!\u0301"), (Pieces{"!\u0301"}));
  EXPECT_EQ(split("qwen35", "!\u0301"), (Pieces{"!\u0301"}));
  EXPECT_EQ(split("qwen35", "!!\u0301"), (Pieces{"!!", "\u0301"}));
}

TEST(PreTokenizer, SmollmTakesDigitsOutFirst) {
  EXPECT_EQ(split("gpt-2", "ab 12 c"), (Pieces{"ab", " 12", " c"}));
  EXPECT_EQ(split("smollm", "ab 12 c"), (Pieces{"ab", " ", "1", "2", " c"}));
  // The blanks before the digit end their piece: nothing is left for a next word.
  EXPECT_EQ(split("smollm", "a  1"), (Pieces{"a", "  ", "1"}));
  EXPECT_EQ(split("smollm", "DON'T don't"), (Pieces{"DON", "'", "T", " don", "'t"}));
}

TEST(PreTokenizer, LlamaGroupsThreeDigits) {
  EXPECT_EQ(split("llama-bpe", "12345"), (Pieces{"123", "45"}));
}

// Unicode's White_Space, neither more (U+180E, U+200B, U+FEFF, U+001C) nor less (U+0085).
TEST(PreTokenizer, WhiteSpaceIsUnicodes) {
  PreTokenizer pre_tokenizer = make("qwen35");
  const uint32_t white_space[] = {0x9,    0xA,    0xB,    0xC,    0xD,    0x20,   0x85,   0xA0,   0x1680,
                                  0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
                                  0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string character, text;
    utf8::append(character, c);
    text.append(character).append(character).append("a");
    // Of two blanks before a word, the second joins the word. Letters and marks all join it, punctuation and
    // line ends stay together without it, numbers stand alone.
    size_t n_pieces = 0, first_bytes = 0;
    pre_tokenizer.split(text, [&](std::string_view piece) {
      if (n_pieces++ == 0) first_bytes = piece.size();
    });
    bool cuts_like_space = n_pieces == 2 && first_bytes == character.size();
    bool is_space = std::ranges::find(white_space, c) != std::end(white_space);
    ASSERT_EQ(cuts_like_space, is_space && c != '\n' && c != '\r') << std::hex << c;
  }
}

TEST(PreTokenizer, CategoriesReachUnicode16) {
  PreTokenizer pre_tokenizer = make("qwen35");
  for (const char* letter : {"\U0001E030", "\U000323AF", "\U0002EBF0", "\U000105C0", "\u1C89"})
    EXPECT_EQ(split(pre_tokenizer, std::string("a") + letter + "b"),
              (Pieces{std::string("a") + letter + "b"}));
  for (const char* mark : {"\u0897", "\U00011F00", "\U0001611E"})
    EXPECT_EQ(split(pre_tokenizer, std::string("a") + mark + "b"), (Pieces{std::string("a") + mark + "b"}));
  for (const char* number : {"\U0001CCF0", "\U00010D40", "\U0001E4F0"})
    EXPECT_EQ(split(pre_tokenizer, std::string("a") + number + number), (Pieces{"a", number, number}));
}

TEST(PreTokenizer, LongRunsOfOneKindAreNeitherSlowNorTooDeep) {
  for (std::string_view name : {"qwen2", "qwen35", "smollm", "gpt-2", "llama-bpe"}) {
    PreTokenizer pre_tokenizer = make(name);
    for (std::string_view unit :
         {" ", "\n", "\t ", "a", "=", "\u3000", "\u0301", " \n", "\r", "'", "é", "語"}) {
      std::string text;
      while (text.size() < (1 << 18)) text += unit;
      text += "x";
      size_t n_bytes = 0;
      pre_tokenizer.split(text, [&](std::string_view piece) { n_bytes += piece.size(); });
      EXPECT_EQ(n_bytes, text.size());
    }
  }
}

TEST(PreTokenizer, NamesAndAliases) {
  for (auto [alias, name] : {std::pair{"deepseek-r1-qwen", "qwen2"},
                             {"llama3", "llama-bpe"},
                             {"starcoder", "smollm"},
                             {"qwen35", "qwen35"}}) {
    auto rules = find_pre_tokenizer_rules(alias);
    ASSERT_OK(rules);
    EXPECT_EQ((*rules)->name, name);
  }
  EXPECT_TRUE(fails_with(find_pre_tokenizer_rules("tekken"), Code::kUnsupported, "'tekken'", "qwen2",
                         "qwen35", "smollm"));
  EXPECT_TRUE(fails_with(find_pre_tokenizer_rules(""), Code::kUnsupported, "''"));
}

TEST(PreTokenizer, OnlyQwenNormalises) {
  for (auto [name, nfc] : {std::pair{"qwen2", true},
                           {"qwen35", true},
                           {"gpt-2", false},
                           {"smollm", false},
                           {"llama-bpe", false}})
    EXPECT_EQ((*find_pre_tokenizer_rules(name))->nfc, nfc) << name;
}

}  // namespace
}  // namespace forebay
