#include "synth/vocabulary.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "small_models.h"
#include "support/result_matchers.h"
#include "tokenizer/chat_template.h"

namespace forebay::synth {
namespace {

using convert::Family;

struct Case {
  Family family;
  uint64_t n_vocab, n_merges;
  TokenId document_end, think;
  const char* pre;
};

TEST(Vocabulary, HasThePublishedSizesAndIds) {
  for (const Case& c : {Case{Family::kQwen3Moe, 151936, 151387, 151643, 151667, "qwen2"},
                        Case{Family::kQwen4Exp, 248320, 247587, 248044, 248068, "qwen35"}}) {
    SCOPED_TRACE(c.pre);
    const Vocabulary v = must(make_vocabulary(c.family, c.n_vocab));
    EXPECT_EQ(v.tokens.size(), c.n_vocab);
    EXPECT_EQ(v.merges.size(), c.n_merges);
    EXPECT_EQ(v.pre, c.pre);
    EXPECT_EQ(v.tokens[11], ",");
    EXPECT_EQ(v.tokens[c.document_end], "<|endoftext|>");
    EXPECT_EQ(v.tokens[c.think], "<think>");
    EXPECT_EQ(v.tokens.back(), "[PAD" + std::to_string(c.n_vocab - 1) + "]");
    EXPECT_EQ(v.eos, c.document_end + 2);

    const Result<Tokenizer> tokenizer = Tokenizer::create(v);
    ASSERT_OK(tokenizer);
    for (const char* text :
         {"hello", "The quick brown fox, 12 times.\n\n  x", "naïve café", "日本語のテキスト", "\x01🦊"}) {
      const std::vector<TokenId> ids = tokenizer->encode(text);
      EXPECT_EQ(tokenizer->decode(ids).substr(0, 5), std::string(text).substr(0, 5)) << text;
      for (const TokenId id : ids) EXPECT_LT(id, c.document_end);
    }
    EXPECT_LE(tokenizer->encode("hello there").size(), 6u);
    EXPECT_EQ(tokenizer->encode("日本語").size(), 3u);
    EXPECT_EQ(tokenizer->encode("<|im_end|>"), std::vector<TokenId>{c.document_end + 2});
  }
}

TEST(Vocabulary, OtherSizesKeepBytesAndControlTokens) {
  const Vocabulary v = must(make_vocabulary(Family::kQwen35Moe, 600));
  EXPECT_EQ(v.tokens.size(), 600u);
  ASSERT_OK(Tokenizer::create(v));
  EXPECT_TRUE(fails_with(make_vocabulary(Family::kQwen35Moe, 288), Code::kInvalidArgument, "288", "289"));
  EXPECT_TRUE(fails_with(make_vocabulary(Family::kQwen35Moe, 1 << 20), Code::kInvalidArgument, "524288"));
}

TEST(Vocabulary, LargestSizeIsReached) {
  EXPECT_EQ(must(make_vocabulary(Family::kQwen3Next, 1 << 19)).tokens.size(), 1u << 19);
}

TEST(Vocabulary, TemplateWritesChats) {
  const SynthPlan plan = must(plan_synthetic(small_options("qwen3-30b-a3b")));
  const Result<ChatTemplate> chat =
      ChatTemplate::parse(must(plan.metadata.get_string("tokenizer.chat_template")));
  ASSERT_OK(chat);
  const auto context = nlohmann::ordered_json::parse(
      R"({"messages": [{"role": "user", "content": "Hi."}], "add_generation_prompt": true})");
  EXPECT_EQ(must(chat->render(context, 0)), "<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\n");
}

}  // namespace
}  // namespace forebay::synth
