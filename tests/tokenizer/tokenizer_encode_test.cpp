#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tokenizer_vocabularies.h"

namespace forebay {
namespace {

using Ids = std::vector<TokenId>;

TEST(Tokenizer, KnowsItsSpecialTokens) {
  Vocabulary vocabulary = pebble_vocabulary();
  vocabulary.eos = 2;
  vocabulary.pad = 0;
  Tokenizer tokenizer = Tokenizer::create(std::move(vocabulary)).value();
  EXPECT_EQ(tokenizer.n_tokens(), 12288);
  EXPECT_EQ(tokenizer.find_special("<think>"), 3);
  EXPECT_FALSE(tokenizer.find_special("the"));
  EXPECT_FALSE(tokenizer.find_special("[PAD0]"));
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_FALSE(tokenizer.bos());
  EXPECT_FALSE(tokenizer.add_bos());
  EXPECT_EQ(Ids(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end()), (Ids{2, 0}));
  EXPECT_TRUE(tokenizer.is_stop(0));
  EXPECT_FALSE(tokenizer.is_stop(1));
  EXPECT_EQ(tokenizer.kind(3), TokenKind::kControl);
  EXPECT_EQ(tokenizer.kind(-1), TokenKind::kUnused);
  EXPECT_EQ(tokenizer.kind(12288), TokenKind::kUnused);
}

TEST(Tokenizer, BosNeedsAnId) {
  Vocabulary vocabulary = ByteVocabulary{}.build();
  vocabulary.add_bos = true;
  EXPECT_FALSE(Tokenizer::create(vocabulary)->add_bos());
  vocabulary.bos = 11;
  Tokenizer tokenizer = Tokenizer::create(vocabulary).value();
  EXPECT_TRUE(tokenizer.add_bos());
  EXPECT_EQ(tokenizer.encode("!").size(), 1u);  // encode adds nothing
}

TEST(Tokenizer, ParsesControlTokensOnlyWhenAsked) {
  Tokenizer tokenizer =
      Tokenizer::create(ByteVocabulary{.control = {"<|im_end|>"}, .user_defined = {"<think>"}}.build())
          .value();
  EXPECT_EQ(tokenizer.encode("a<|im_end|><think>"), (Ids{'a', 256, 257}));
  Ids plain = tokenizer.encode("a<|im_end|><think>", {.parse_special = false});
  EXPECT_EQ(plain, (Ids{'a', '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>', 257}));
}

TEST(Tokenizer, NeverMatchesUnusedTokens) {
  Vocabulary vocabulary = ByteVocabulary{.merges = {"a b"}}.build();
  vocabulary.tokens.push_back("[PAD257]");
  vocabulary.kinds.push_back(TokenKind::kUnused);
  Tokenizer tokenizer = Tokenizer::create(vocabulary).value();
  EXPECT_EQ(tokenizer.encode("[PAD257]").size(), 8u);
  EXPECT_EQ(tokenizer.token_bytes(257, true), "");
  // A merge cannot lead to one either.
  vocabulary.kinds[256] = TokenKind::kUnused;
  EXPECT_TRUE(
      fails_with(Tokenizer::create(vocabulary), Code::kCorrupt, "merge 0 'a b'", "'ab' is not a token"));
}

TEST(Tokenizer, TokenBytesFollowKindAndRange) {
  Tokenizer tokenizer =
      Tokenizer::create(ByteVocabulary{.control = {"<|im_end|>"}, .user_defined = {"<think>"}}.build())
          .value();
  EXPECT_EQ(tokenizer.token_bytes(0xE3), "\xE3");
  EXPECT_EQ(tokenizer.token_bytes(256), "");
  EXPECT_EQ(tokenizer.token_bytes(256, true), "<|im_end|>");
  EXPECT_EQ(tokenizer.token_bytes(257), "<think>");
  EXPECT_EQ(tokenizer.token_bytes(-1, true), "");
  EXPECT_EQ(tokenizer.token_bytes(258, true), "");
  EXPECT_EQ(tokenizer.decode(Ids{'a', 256, 257, 999, -5}), "a<think>");
  EXPECT_EQ(tokenizer.decode(Ids{'a', 256, 257}, true), "a<|im_end|><think>");
}

TEST(Tokenizer, NormalisationStopsAtAddedTokens) {
  Tokenizer tokenizer = Tokenizer::create(ByteVocabulary{.user_defined = {"<e>"}}.build()).value();
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("e\u0301<e>\u0301e\u0301")), "\u00E9<e>\u0301\u00E9");
}

TEST(Tokenizer, FamiliesWithoutNfcLeaveTextAlone) {
  Tokenizer tokenizer = Tokenizer::create(ByteVocabulary{.pre = "gpt-2"}.build()).value();
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("e\u0301")), "e\u0301");
}

TEST(Tokenizer, WholePiecesOfLlama) {
  // Merges alone would give "bc" first and never reach "abc".
  ByteVocabulary bytes{.merges = {"b c", "a b"}, .pre = "llama-bpe"};
  Vocabulary vocabulary = bytes.build();
  vocabulary.tokens.push_back("abc");
  vocabulary.kinds.push_back(TokenKind::kNormal);
  EXPECT_EQ(Tokenizer::create(vocabulary)->encode("abc abc"), (Ids{258, ' ', 'a', 256}));
  vocabulary.pre = "gpt-2";
  EXPECT_EQ(Tokenizer::create(vocabulary)->encode("abc"), (Ids{'a', 256}));
}

TEST(Tokenizer, BytesWithoutATokenAreDropped) {
  Vocabulary vocabulary = ByteVocabulary{.merges = {"a b"}}.build();
  for (int byte : {0xC3, 0xA9}) vocabulary.kinds[static_cast<size_t>(byte)] = TokenKind::kUnused;
  EXPECT_EQ(Tokenizer::create(vocabulary)->encode("a\u00E9b"), (Ids{256}));
}

TEST(Tokenizer, CreateSaysWhatIsWrong) {
  Vocabulary vocabulary = ByteVocabulary{.pre = "tekken"}.build();
  EXPECT_TRUE(fails_with(Tokenizer::create(vocabulary), Code::kUnsupported, "'tekken'", "qwen35"));
  vocabulary.pre = "qwen2";
  vocabulary.merges.push_back("a xyz");
  EXPECT_TRUE(fails_with(Tokenizer::create(vocabulary), Code::kCorrupt, "merge 0 'a xyz'", "'xyz'"));
  vocabulary.merges.clear();
  vocabulary.kinds.clear();
  EXPECT_TRUE(fails_with(Tokenizer::create(vocabulary), Code::kCorrupt, "token types"));
}

TEST(Tokenizer, LongPiecesAndManySegments) {
  Tokenizer tokenizer = pebble_tokenizer();
  std::string text;
  for (int i = 0; i < 1 << 20; ++i) text.push_back(static_cast<char>('a' + i % 7));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  text.clear();
  for (int i = 0; i < 20'000; ++i) text += "<|im_end|>x";
  EXPECT_EQ(tokenizer.encode(text).size(), 40'000u);
}

// The ids that a trained model was evaluated with, where the checkpoint is at hand.
TEST(Tokenizer, PromptsOfTheCheckpoint) {
  std::string folder = std::string(FOREBAY_SOURCE_DIR) + "/../shared/models/pebble/";
  std::ifstream prompts(folder + "prompts.json"), tensors(folder + "expected.safetensors", std::ios::binary);
  if (!prompts || !tensors) GTEST_SKIP() << "no " << folder;
  std::string raw{std::istreambuf_iterator<char>(tensors), {}};
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, raw.data(), 8);
  auto header = nlohmann::json::parse(raw.substr(8, header_bytes));
  Tokenizer tokenizer = pebble_tokenizer();
  auto texts = nlohmann::json::parse(prompts);
  for (const auto& [name, prompt] : texts.items()) {
    const auto& tensor = header.at(name + ".ids");
    size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
    size_t item = tensor["dtype"] == "I64" ? 8 : 4;
    Ids wanted;
    for (size_t at = begin; at < end; at += item) {
      int32_t id = 0;
      std::memcpy(&id, raw.data() + 8 + header_bytes + at, 4);
      wanted.push_back(id);
    }
    Ids ids = tokenizer.encode(prompt.get<std::string>());
    ASSERT_GE(ids.size(), wanted.size()) << name;
    ids.resize(wanted.size());  // they keep the first 420
    EXPECT_EQ(ids, wanted) << name;
  }
}

}  // namespace
}  // namespace forebay
