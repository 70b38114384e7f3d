// Files to tokens, and which of them are learnt.
#include "train/fit/documents.h"

#include <gtest/gtest.h>

#include "support/memory_storage.h"
#include "test_models.h"

namespace forebay::train {
namespace {

class DocumentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto posix = make_posix_storage();
    Result<TextReader> opened = TextReader::open(*posix, forebay::testing::embedded_model());
    ASSERT_TRUE(opened) << opened.error().message;
    reader_ = std::move(*opened);
  }
  std::string text(const Documents& d, size_t document, bool only_learnt = false) const {
    std::vector<int32_t> ids;
    for (uint64_t t = d.ends[document]; t < d.ends[document + 1]; ++t)
      if (!only_learnt || d.learnt[t] != 0) ids.push_back(d.ids[t]);
    return reader_.tokenizer->decode(ids, true);
  }

  TextReader reader_;
  MemoryStorage storage_;
  ThreadPool pool_{1};
};

constexpr const char* kChat =
    R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}, )"
    R"({"role": "assistant", "content": "4", "reasoning_content": "two and two"}, {"role": "user", "content": "+1"}, )"
    R"({"role": "assistant", "content": "5"}]})";

TEST_F(DocumentsTest, PlainTextEndsWithTheEndOfText) {
  storage_.put("a.txt", "A forebay is a pool. <|im_end|>");
  const std::vector<std::string> paths{"a.txt"};
  const auto documents = read_documents(storage_, paths, reader_, Learn::kEverything, pool_);
  ASSERT_TRUE(documents) << documents.error().message;
  ASSERT_EQ(documents->size(), 1u);
  EXPECT_EQ(text(*documents, 0), "A forebay is a pool. <|im_end|><|endoftext|>");
  EXPECT_EQ(documents->ids.back(), *reader_.tokenizer->find_special("<|endoftext|>"));
  // A control token's text inside a document is not the control token.
  EXPECT_EQ(std::ranges::count(documents->ids, *reader_.tokenizer->find_special("<|im_end|>")), 0);
}

TEST_F(DocumentsTest, OfConversationsTheAssistantIsLearnt) {
  storage_.put("chats.jsonl", std::string(kChat) + "\n\n" + kChat + "\n");
  const std::vector<std::string> paths{"chats.jsonl"};
  const auto documents = read_documents(storage_, paths, reader_, Learn::kAssistant, pool_);
  ASSERT_TRUE(documents) << documents.error().message;
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ(text(*documents, 1, true),
            "<think>\ntwo and two\n</think>\n\n4<|im_end|><think>\n\n</think>\n\n5<|im_end|>");
  EXPECT_TRUE(
      text(*documents, 0).starts_with("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?"));
}

TEST_F(DocumentsTest, WhatIsWrongIsNamed) {
  storage_.put("bad.jsonl", std::string(kChat) + "\n{\"messages\": 3}\n");
  storage_.put("plain.txt", "text");
  const std::vector<std::string> bad{"bad.jsonl"}, plain{"plain.txt"}, missing{"no.txt"};
  const auto line = read_documents(storage_, bad, reader_, Learn::kEverything, pool_);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().message, "bad.jsonl: line 2: neither a \"text\" nor \"messages\"");
  EXPECT_EQ(read_documents(storage_, plain, reader_, Learn::kAssistant, pool_).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(read_documents(storage_, missing, reader_, Learn::kEverything, pool_).error().code,
            Code::kNotFound);
}

TEST_F(DocumentsTest, TheHashIsThatOfTokensMarksAndBorders) {
  Documents a;
  a.add(std::vector<int32_t>{1, 2, 3}, std::vector<uint8_t>{1, 1, 1});
  Documents b = a, c = a, d;
  b.ids[1] = 9;
  c.learnt[1] = 0;
  d.add(std::vector<int32_t>{1, 2}, std::vector<uint8_t>{1, 1});
  d.add(std::vector<int32_t>{3}, std::vector<uint8_t>{1});
  EXPECT_NE(a.hash(), b.hash());
  EXPECT_NE(a.hash(), c.hash());
  EXPECT_NE(a.hash(), d.hash());
  EXPECT_EQ(a.hash(), Documents(a).hash());
}

}  // namespace
}  // namespace forebay::train
