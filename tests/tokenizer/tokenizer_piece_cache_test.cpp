#include <string>

#include <gtest/gtest.h>

#include "tokenizer/piece_cache.h"

namespace forebay {
namespace {

TEST(PieceCache, ReturnsWhatWasInsertedAndNothingElse) {
  PieceCache cache;
  // Far more than it holds, so that it grows and starts afresh.
  const int n_pieces = 600'000;
  int n_found = 0;
  for (int i = 0; i < n_pieces; ++i) {
    // Every second piece is one of a thousand, the others are new.
    int word = i % 2 == 0 ? i / 2 % 1000 : i + 1000;
    std::string piece = " word" + std::to_string(word);
    uint64_t hash = PieceCache::hash_of(piece);
    std::vector<TokenId> ids = {word, static_cast<TokenId>(piece.size())};
    if (auto known = cache.find(piece, hash)) {
      ASSERT_EQ(std::vector<TokenId>(known->begin(), known->end()), ids) << piece;
      ++n_found;
      continue;
    }
    cache.insert(piece, hash, ids);
    auto known = cache.find(piece, hash);
    ASSERT_TRUE(!known || std::vector<TokenId>(known->begin(), known->end()) == ids) << piece;
  }
  EXPECT_GT(n_found, n_pieces / 2 * 9 / 10);
}

TEST(PieceCache, KeepsPiecesOfOneHashApart) {
  PieceCache cache;
  const TokenId one[] = {1}, two[] = {2};
  cache.insert("one", 5, one);
  EXPECT_FALSE(cache.find("two", 5));
  cache.insert("two", 5, two);
  EXPECT_EQ(cache.find("one", 5)->front(), 1);
  EXPECT_EQ(cache.find("two", 5)->front(), 2);
  for (int i = 0; i < 100; ++i) cache.insert("more" + std::to_string(i), 5, one);
  EXPECT_EQ(cache.find("two", 5)->front(), 2);
}

TEST(PieceCache, RemembersPiecesWithoutTokens) {
  PieceCache cache;
  cache.insert("x", 1, {});
  ASSERT_TRUE(cache.find("x", 1));
  EXPECT_TRUE(cache.find("x", 1)->empty());
}

}  // namespace
}  // namespace forebay
