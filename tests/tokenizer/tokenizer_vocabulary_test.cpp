#include <string>

#include "support/result_matchers.h"
#include "tokenizer/token_bytes.h"
#include "tokenizer/vocabulary_check.h"
#include "tokenizer_vocabularies.h"

namespace forebay {
namespace {

Vocabulary small() {
  return ByteVocabulary{.merges = {"a b", "ab c"}, .control = {"<|im_end|>"}, .user_defined = {"<think>"}}
      .build();
}

TEST(VocabularyCheck, FindsMergesAndBytes) {
  auto checked = check_vocabulary(small());
  ASSERT_OK(checked);
  ASSERT_EQ(checked->merges.size(), 2u);
  EXPECT_EQ(checked->merges[1].left, 256);
  EXPECT_EQ(checked->merges[1].right, 'c');
  EXPECT_EQ(checked->merges[1].merged, 257);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(checked->byte_tokens[static_cast<size_t>(byte)], byte);

  Vocabulary vocabulary = small();
  vocabulary.kinds['x'] = TokenKind::kUnused;
  EXPECT_EQ(check_vocabulary(vocabulary)->byte_tokens['x'], Bpe::kNoToken);
}

TEST(VocabularyCheck, NamesTheTokenThatIsWrong) {
  Vocabulary vocabulary;
  EXPECT_TRUE(fails_with(check_vocabulary(vocabulary), Code::kCorrupt, "no tokens"));

  vocabulary = small();
  vocabulary.kinds.pop_back();
  EXPECT_TRUE(fails_with(check_vocabulary(vocabulary), Code::kCorrupt, "260 tokens", "259 token types"));

  vocabulary = small();
  vocabulary.tokens[7] = "abc";
  EXPECT_TRUE(fails_with(check_vocabulary(vocabulary), Code::kCorrupt, "token 257 'abc'", "token 7"));
  vocabulary.kinds[7] = TokenKind::kUnused;  // never matched, so nobody minds
  EXPECT_OK(check_vocabulary(vocabulary));

  vocabulary = small();
  vocabulary.tokens[9].clear();
  EXPECT_TRUE(fails_with(check_vocabulary(vocabulary), Code::kCorrupt, "token 9", "no text"));

  for (int kind : {0, 7, 200}) {
    vocabulary = small();
    vocabulary.kinds[258] = static_cast<TokenKind>(kind);
    EXPECT_TRUE(fails_with(check_vocabulary(vocabulary), Code::kCorrupt, "token 258 '<|im_end|>'",
                           std::to_string(kind)));
  }

  for (TokenId id : {-1, 260}) {
    vocabulary = small();
    vocabulary.eos = id;
    EXPECT_TRUE(fails_with(check_vocabulary(vocabulary), Code::kCorrupt, "eos", std::to_string(id), "260"));
    vocabulary.eos.reset();
    vocabulary.bos = id;
    EXPECT_TRUE(fails_with(check_vocabulary(vocabulary), Code::kCorrupt, "bos"));
    vocabulary.bos.reset();
    vocabulary.pad = id;
    EXPECT_TRUE(fails_with(check_vocabulary(vocabulary), Code::kCorrupt, "pad"));
  }
}

TEST(VocabularyCheck, NamesTheMergeThatIsWrong) {
  auto error_of = [](const std::string& merge) {
    Vocabulary vocabulary = small();
    vocabulary.merges.push_back(merge);
    return check_vocabulary(vocabulary);
  };
  EXPECT_TRUE(fails_with(error_of("x yz"), Code::kCorrupt, "merge 2 'x yz'", "'yz' is not a token"));
  EXPECT_TRUE(fails_with(error_of("yz x"), Code::kCorrupt, "'yz' is not a token"));
  EXPECT_TRUE(fails_with(error_of("b a"), Code::kCorrupt, "'ba' is not a token"));
  for (const char* broken : {"", " ", "a", "a ", " a"})
    EXPECT_TRUE(fails_with(error_of(broken), Code::kCorrupt, "merge 2", "two symbols")) << broken;
}

TEST(TokenBytes, FollowTheKind) {
  Vocabulary vocabulary = small();
  vocabulary.tokens.insert(vocabulary.tokens.end(), {"<0x0A>", "[PAD261]", "ĠĊé"});
  vocabulary.kinds.insert(vocabulary.kinds.end(),
                          {TokenKind::kByte, TokenKind::kUnused, TokenKind::kUnknown});
  auto bytes = TokenBytes::create(vocabulary);
  ASSERT_OK(bytes);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(bytes->of(byte), std::string(1, static_cast<char>(byte)));
  EXPECT_EQ(bytes->of(257), "abc");
  EXPECT_EQ(bytes->of(258), "<|im_end|>");
  EXPECT_EQ(bytes->of(260), "\n");
  EXPECT_EQ(bytes->of(261), "");
  EXPECT_EQ(bytes->of(262), "ĠĊé");

  vocabulary.kinds[258] = TokenKind::kNormal;
  EXPECT_OK(TokenBytes::create(vocabulary));
  vocabulary.tokens[258] = "two words";
  EXPECT_TRUE(
      fails_with(TokenBytes::create(vocabulary), Code::kCorrupt, "token 258 'two words'", "alphabet"));
  vocabulary = small();
  vocabulary.kinds[256] = TokenKind::kByte;
  EXPECT_TRUE(fails_with(TokenBytes::create(vocabulary), Code::kCorrupt, "token 256 'ab'", "<0x0A>"));
}

TEST(QuoteText, StaysShortAndOnOneLine) {
  EXPECT_EQ(quote_text("a\nb\x7F\xFFé"), "'a\\x0Ab\\x7F\\xFFé'");
  EXPECT_EQ(quote_text("\u0085\u2028"), "'\\xC2\\x85\\xE2\\x80\\xA8'");
  EXPECT_EQ(quote_text(std::string(1000, 'x')), "'" + std::string(39, 'x') + "...' (1000 bytes)");
}

}  // namespace
}  // namespace forebay
