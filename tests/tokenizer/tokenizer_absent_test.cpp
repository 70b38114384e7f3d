// Runs in builds that lack PCRE2 or utf8proc.
#include "tokenizer_vocabularies.h"

namespace forebay {
namespace {

TEST(TokenizerAbsent, CreateSaysWhatThisBuildLacks) {
  auto qwen = Tokenizer::create(ByteVocabulary{.pre = "qwen35"}.build());
  EXPECT_TRUE(fails_with(qwen, Code::kUnsupported,
                         FOREBAY_HAVE_PCRE2 ? "built without utf8proc" : "built without PCRE2"));
}

TEST(TokenizerAbsent, FamiliesWithoutNfcNeedNoUtf8proc) {
  auto gpt2 = Tokenizer::create(ByteVocabulary{.pre = "gpt-2"}.build());
  EXPECT_EQ(gpt2.has_value(), FOREBAY_HAVE_PCRE2);
}

}  // namespace
}  // namespace forebay
