#include <algorithm>
#include <random>
#include <string>

#include "replaced.h"
#include "tokenizer/utf8.h"
#include "tokenizer_vocabularies.h"

namespace forebay {
namespace {

const Tokenizer& bytes_tokenizer() {
  static const Tokenizer tokenizer =
      Tokenizer::create(ByteVocabulary{.control = {"<|im_end|>"}, .user_defined = {"<think>"}}.build())
          .value();
  return tokenizer;
}

constexpr TokenId kImEnd = 256, kThink = 257;

bool is_valid(std::string_view text) {
  return utf8::valid_prefix_bytes(text) == text.size();
}

TEST(StreamDecoder, HoldsACharacterBackUntilItsLastByte) {
  for (std::string character : {"\u00E9", "\u8A9E", "\U0001F600"}) {
    StreamDecoder decoder(bytes_tokenizer());
    EXPECT_EQ(decoder.push('x'), "x");
    for (size_t i = 0; i + 1 < character.size(); ++i)
      EXPECT_EQ(decoder.push(static_cast<uint8_t>(character[i])), "");
    EXPECT_EQ(decoder.push(static_cast<uint8_t>(character.back())), character);
    EXPECT_EQ(decoder.finish(), "");
  }
}

TEST(StreamDecoder, FinishReplacesWhatNeverCompleted) {
  std::string character = "\U0001F600";
  for (size_t n = 1; n < character.size(); ++n) {
    StreamDecoder decoder(bytes_tokenizer());
    for (size_t i = 0; i < n; ++i) decoder.push(static_cast<uint8_t>(character[i]));
    EXPECT_EQ(decoder.finish(), "\uFFFD") << n;
    EXPECT_EQ(decoder.finish(), "");
    EXPECT_EQ(decoder.push('x'), "x");  // and starts afresh
  }
}

TEST(StreamDecoder, AWrongContinuationReplacesWhatWasHeldBack) {
  StreamDecoder decoder(bytes_tokenizer());
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push(0x9F), "");
  EXPECT_EQ(decoder.push('x'), "\uFFFDx");
  EXPECT_EQ(decoder.push(0x80), "\uFFFD");
  EXPECT_EQ(decoder.push(0xFF), "\uFFFD");
}

TEST(StreamDecoder, ShowsSpecialsWhenAsked) {
  StreamDecoder hidden(bytes_tokenizer()), shown(bytes_tokenizer(), true);
  EXPECT_EQ(hidden.push(kImEnd), "");
  EXPECT_EQ(hidden.push(kThink), "<think>");
  EXPECT_EQ(hidden.push(-1), "");
  EXPECT_EQ(hidden.push(100'000), "");
  EXPECT_EQ(shown.push(kImEnd), "<|im_end|>");
  // A hidden token does not end a character that is still coming.
  EXPECT_EQ(hidden.push(0xC3), "");
  EXPECT_EQ(hidden.push(kImEnd), "");
  EXPECT_EQ(hidden.push(0xA9), "\u00E9");
  EXPECT_EQ(shown.push(0xC3), "");
  EXPECT_EQ(shown.push(kImEnd), "\uFFFD<|im_end|>");
}

TEST(StreamDecoder, AnyStreamIsValidAtEveryStepAndEqualsDecoding) {
  Tokenizer pebble = pebble_tokenizer();
  std::mt19937 random(11);
  for (const Tokenizer* tokenizer : {static_cast<const Tokenizer*>(&pebble), &bytes_tokenizer()})
    for (int round = 0; round < 2000; ++round) {
      std::vector<TokenId> ids;
      for (size_t n = random() % 40; n > 0; --n)
        ids.push_back(static_cast<TokenId>(random() % static_cast<size_t>(tokenizer->n_tokens())));
      bool specials = round % 2 == 0;
      StreamDecoder decoder(*tokenizer, specials);
      std::string streamed;
      for (TokenId id : ids) {
        std::string text = decoder.push(id);
        ASSERT_TRUE(is_valid(text)) << "round " << round;
        streamed += text;
      }
      streamed += decoder.finish();
      ASSERT_EQ(streamed, replaced(tokenizer->decode(ids, specials))) << "round " << round;
    }
}

TEST(StreamDecoder, ValidTextComesBackHoweverItIsSplit) {
  std::string text = "a\u00E9\u8A9E\U0001F600\U0001F468\u200D\U0001F469\u0E01\u0E33 \u0301";
  // Tokens of one to three bytes, cut anywhere.
  Vocabulary vocabulary = ByteVocabulary{}.build();
  for (size_t n : {2, 3})
    for (size_t at = 0; at + n <= text.size(); ++at) {
      std::string token = to_byte_alphabet(text.substr(at, n));
      if (std::ranges::find(vocabulary.tokens, token) != vocabulary.tokens.end()) continue;
      vocabulary.tokens.push_back(token);
      vocabulary.kinds.push_back(TokenKind::kNormal);
    }
  Tokenizer tokenizer = Tokenizer::create(vocabulary).value();
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    StreamDecoder decoder(tokenizer);
    std::string streamed;
    for (size_t at = 0; at < text.size();) {
      size_t n = std::min<size_t>(1 + random() % 3, text.size() - at);
      auto token = std::ranges::find(vocabulary.tokens, to_byte_alphabet(text.substr(at, n)));
      std::string part = decoder.push(static_cast<TokenId>(token - vocabulary.tokens.begin()));
      ASSERT_TRUE(is_valid(part));
      streamed += part;
      at += n;
    }
    ASSERT_EQ(streamed + decoder.finish(), text);
  }
}

}  // namespace
}  // namespace forebay
