#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tokenizer/added_tokens.h"

namespace forebay {
namespace {

std::vector<std::string> matches(const AddedTokens& added, std::string_view text) {
  std::vector<std::string> found;
  size_t at = 0;
  while (auto match = added.find(text, at)) {
    found.push_back(std::to_string(match->offset) + ":" + std::to_string(match->id));
    at = match->offset + match->n_bytes;
  }
  return found;
}

using Found = std::vector<std::string>;

TEST(AddedTokens, TheLeftmostWinsThenTheLongest) {
  AddedTokens added({{"<a>", 1}, {"<a>b", 2}, {"a>bc", 3}, {"<", 4}});
  EXPECT_EQ(matches(added, "<a>"), (Found{"0:1"}));
  EXPECT_EQ(matches(added, "<a>b"), (Found{"0:2"}));
  EXPECT_EQ(matches(added, "<a>bc"), (Found{"0:2"}));
  EXPECT_EQ(matches(added, "xa>bc<"), (Found{"1:3", "5:4"}));
  EXPECT_EQ(matches(added, "<<a><a"), (Found{"0:4", "1:1", "4:4"}));
}

TEST(AddedTokens, NoneMeansNoMatch) {
  AddedTokens added({});
  EXPECT_EQ(matches(added, "<a>"), Found{});
  EXPECT_EQ(matches(added, ""), Found{});
  EXPECT_FALSE(added.id_of("<a>"));
}

TEST(AddedTokens, IdOfIsExact) {
  AddedTokens added({{"<think>", 7}, {"<think", 8}});
  EXPECT_EQ(added.id_of("<think>"), 7);
  EXPECT_EQ(added.id_of("<think"), 8);
  EXPECT_FALSE(added.id_of("<thin"));
  EXPECT_FALSE(added.id_of(""));
  EXPECT_FALSE(added.id_of("<think>>"));
}

TEST(AddedTokens, BytesAboveAsciiAreBytesLikeOthers) {
  AddedTokens added({{"｜x｜", 1}, {"\xEF\xBD", 2}});
  EXPECT_EQ(matches(added, "a｜x｜"), (Found{"1:1"}));
  EXPECT_EQ(matches(added, "｜"), (Found{"0:2"}));
}

TEST(AddedTokens, EqualsTryingEveryTokenAtEveryPlace) {
  std::mt19937 random(3);
  auto word = [&](size_t n) {
    std::string text;
    while (text.size() < n) text.push_back("<|a>"[random() % 4]);
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<AddedTokens::Token> tokens;
    for (int id = 0; id < 12; ++id) {
      std::string text = word(1 + random() % 4);
      bool is_new = true;
      for (const auto& token : tokens) is_new = is_new && token.text != text;
      if (is_new) tokens.push_back({text, id});
    }
    AddedTokens added(tokens);
    std::string text = word(30);
    Found expected;
    for (size_t at = 0; at < text.size();) {
      const AddedTokens::Token* longest = nullptr;
      for (const auto& token : tokens)
        if (text.compare(at, token.text.size(), token.text) == 0 &&
            (!longest || token.text.size() > longest->text.size()))
          longest = &token;
      if (longest) expected.push_back(std::to_string(at) + ":" + std::to_string(longest->id));
      at += longest ? longest->text.size() : 1;
    }
    ASSERT_EQ(matches(added, text), expected) << "round " << round << " text " << text;
  }
}

}  // namespace
}  // namespace forebay
