#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tokenizer/bpe.h"

namespace forebay {
namespace {

std::array<TokenId, 256> one_token_per_byte() {
  std::array<TokenId, 256> ids;
  for (size_t byte = 0; byte < 256; ++byte) ids[byte] = static_cast<TokenId>(byte);
  return ids;
}

std::vector<TokenId> encode(const Bpe& bpe, std::string_view piece) {
  BpeScratch scratch;
  std::vector<TokenId> ids;
  bpe.encode(piece, scratch, ids);
  return ids;
}

// The definition, word by word: look at all pairs, merge the best, start again.
std::vector<TokenId> encode_slowly(const std::vector<Merge>& merges, std::string_view piece) {
  std::vector<TokenId> ids;
  for (char c : piece) ids.push_back(static_cast<uint8_t>(c));
  while (true) {
    size_t best_rank = merges.size(), best_at = 0;
    for (size_t at = 0; at + 1 < ids.size(); ++at)
      for (size_t rank = 0; rank < best_rank; ++rank)
        if (merges[rank].left == ids[at] && merges[rank].right == ids[at + 1]) {
          best_rank = rank;
          best_at = at;
        }
    if (best_rank == merges.size()) return ids;
    ids[best_at] = merges[best_rank].merged;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best_at) + 1);
  }
}

TEST(Bpe, EqualsTheDefinitionOnRandomMergesAndPieces) {
  std::mt19937 random(7);
  auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    // Over three bytes, with merges of merges: ties, chains and overlaps are everywhere.
    std::vector<TokenId> known = {'a', 'b', 'c'};
    std::vector<Merge> merges;
    for (int i = 0; i < 1 + round % 12; ++i) {
      TokenId merged = 256 + i;
      merges.push_back({known[static_cast<size_t>(below(known.size()))],
                        known[static_cast<size_t>(below(known.size()))], merged});
      known.push_back(merged);
    }
    Bpe bpe(merges, one_token_per_byte());
    for (int i = 0; i < 20; ++i) {
      std::string piece;
      for (int n = below(40); n >= 0; --n) piece.push_back(static_cast<char>('a' + below(3)));
      ASSERT_EQ(encode(bpe, piece), encode_slowly(merges, piece)) << "round " << round << " piece " << piece;
    }
  }
}

TEST(Bpe, MergesLeftmostFirstOnTies) {
  Bpe bpe({{'a', 'a', 256}}, one_token_per_byte());
  EXPECT_EQ(encode(bpe, "aaa"), (std::vector<TokenId>{256, 'a'}));
  EXPECT_EQ(encode(bpe, "aaaaa"), (std::vector<TokenId>{256, 256, 'a'}));
}

TEST(Bpe, RankDecidesNotLength) {
  Bpe bpe({{'b', 'c', 256}, {'a', 'b', 257}, {257, 'c', 258}}, one_token_per_byte());
  EXPECT_EQ(encode(bpe, "abc"), (std::vector<TokenId>{'a', 256}));
}

TEST(Bpe, TheFirstOfTwoMergesOfOnePairCounts) {
  Bpe bpe({{'a', 'b', 256}, {'b', 'c', 257}, {'a', 'b', 258}}, one_token_per_byte());
  EXPECT_EQ(encode(bpe, "abc"), (std::vector<TokenId>{256, 'c'}));
}

TEST(Bpe, BytesWithoutATokenVanishBeforeMerging) {
  auto bytes = one_token_per_byte();
  bytes['x'] = Bpe::kNoToken;
  Bpe bpe({{'a', 'b', 256}}, bytes);
  EXPECT_EQ(encode(bpe, "axb"), (std::vector<TokenId>{256}));
  EXPECT_EQ(encode(bpe, "xx"), (std::vector<TokenId>{}));
}

TEST(Bpe, WithoutMergesOrTextThereIsNothingToMerge) {
  Bpe bpe({}, one_token_per_byte());
  EXPECT_EQ(encode(bpe, "ab"), (std::vector<TokenId>{'a', 'b'}));
  EXPECT_EQ(encode(bpe, ""), (std::vector<TokenId>{}));
}

TEST(Bpe, AMegabyteInOnePieceTakesNoQuadraticTime) {
  // a, aa, aaaa, ...: every symbol merges again and again. Quadratic work would be 10^12 steps.
  std::vector<Merge> merges;
  TokenId last = 'a';
  for (TokenId merged = 256; merged < 266; ++merged) {
    merges.push_back({last, last, merged});
    last = merged;
  }
  Bpe bpe(merges, one_token_per_byte());
  std::vector<TokenId> ids = encode(bpe, std::string(1 << 20, 'a'));
  EXPECT_EQ(ids, std::vector<TokenId>(1 << 10, last));
}

}  // namespace
}  // namespace forebay
