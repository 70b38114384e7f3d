#include <string>
#include <thread>
#include <vector>

#include "tokenizer_vocabularies.h"

namespace forebay {
namespace {

TEST(TokenizerThreads, ManyThreadsShareOneTokenizer) {
  Tokenizer tokenizer = pebble_tokenizer();
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) {
    std::string text = "<|im_start|>user\nprompt " + std::to_string(i) + " e\u0301 \u65E5\u672C <think>\n";
    for (int n = 0; n < i; ++n) text += " word" + std::to_string(n * i) + "\r\n\xFF";
    texts.push_back(text);
  }
  std::vector<std::vector<TokenId>> wanted;
  for (const std::string& text : texts) wanted.push_back(tokenizer.encode(text));

  const int n_threads = 4;
  std::vector<int> n_wrong(n_threads, 0);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < n_threads; ++thread)
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 20; ++round)
          for (size_t i = 0; i < texts.size(); ++i) {
            auto ids = tokenizer.encode(texts[i]);
            n_wrong[static_cast<size_t>(thread)] += ids != wanted[i];
            n_wrong[static_cast<size_t>(thread)] +=
                tokenizer.decode(ids, true) != tokenizer.decode(wanted[i], true);
          }
      });
  }
  EXPECT_EQ(n_wrong, std::vector<int>(n_threads, 0));
}

}  // namespace
}  // namespace forebay
