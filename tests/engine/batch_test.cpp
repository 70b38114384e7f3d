// Several conversations in one window: each gets the bits that it would have alone.
#include "engine/batch.h"

#include <cstring>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "engine/generation.h"

namespace forebay {
namespace {

const std::string kModel = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

Engine open(int64_t chunk, bool int8 = false) {
  EngineOptions options;
  options.int8_activations = int8;
  options.model = kModel;
  options.threads = 2;
  options.chunk = chunk;
  options.context = 512;
  return std::move(Engine::open(options)).value();
}

class Batches : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModel)) GTEST_SKIP() << "models/pebble.gguf is not there";
  }
};

struct Asked {
  std::vector<int32_t> prompt;
  GenerateOptions options;
};

/// Ids and log-probabilities: equal logits give equal ones.
struct Heard {
  std::vector<int32_t> ids;
  std::vector<double> log_probs;
  std::string text;
  bool operator==(const Heard&) const = default;
};

TokenCallback listen(Heard& heard) {
  return [&heard](const GeneratedToken& token) {
    heard.text += token.text;
    if (token.id < 0) return true;
    heard.ids.push_back(token.id);
    heard.log_probs.push_back(token.log_prob);
    return true;
  };
}

std::vector<Asked> questions(const Engine& engine) {
  std::vector<Asked> all;
  const std::string filler = "The quick brown fox jumps over the lazy dog, and nobody minds. ";
  int n = 0;
  for (int repeats : {0, 9, 2, 14, 0, 5}) {
    std::string text = "<|im_start|>user\n";
    for (int i = 0; i < repeats; ++i) text += filler;
    text += "What is " + std::to_string(17 + 13 * n) + " + 25?<|im_end|>\n<|im_start|>assistant\n<think>\n";
    Asked asked{engine.tokenize(text).value(), {}};
    asked.options.max_tokens = 20 + 3 * n;
    asked.options.sampling.temperature = n % 2 == 0 ? 0.0f : 1.0f;
    asked.options.sampling.seed = static_cast<uint64_t>(n);
    asked.options.sampling.frequency_penalty = 0.1f;
    all.push_back(std::move(asked));
    ++n;
  }
  return all;
}

Heard alone(Engine& engine, const Asked& asked) {
  Heard heard;
  Session session = engine.new_session().value();
  const auto done = session.generate(asked.prompt, asked.options, listen(heard));
  EXPECT_TRUE(done.has_value()) << done.error().message;
  return heard;
}

/// Every step takes a random few of the unfinished, prompts in parts of a random size.
std::vector<Heard> together(Engine& engine, const std::vector<Asked>& asked, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Session> sessions;
  std::vector<Generation> answers;
  std::vector<Heard> heard(asked.size());
  for (size_t i = 0; i < asked.size(); ++i) sessions.push_back(engine.new_session().value());
  for (size_t i = 0; i < asked.size(); ++i)
    answers.push_back(Generation::start(sessions[i], asked[i].prompt, asked[i].options).value());
  while (true) {
    std::vector<Feed> feeds;
    std::vector<size_t> chosen;
    int64_t room = engine.info().chunk;
    bool unfinished = false;
    for (size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].done()) continue;
      unfinished = true;
      if (room == 0 || random() % 4 == 0) continue;
      const Feed next = answers[i].next(std::min<int64_t>(room, 1 + static_cast<int64_t>(random() % 150)));
      room -= static_cast<int64_t>(next.tokens.size());
      feeds.push_back(next);
      chosen.push_back(i);
    }
    if (!unfinished) return heard;
    if (feeds.empty()) continue;
    const Result<void> fed = feed(feeds);
    EXPECT_TRUE(fed.has_value()) << fed.error().message;
    for (size_t i : chosen) EXPECT_TRUE(answers[i].take(listen(heard[i])).has_value());
  }
}

void expect_solo_answers(Engine engine, std::initializer_list<uint64_t> seeds) {
  const std::vector<Asked> asked = questions(engine);
  std::vector<Heard> want;
  for (const Asked& a : asked) want.push_back(alone(engine, a));
  for (uint64_t seed : seeds) {
    const std::vector<Heard> got = together(engine, asked, seed);
    for (size_t i = 0; i < asked.size(); ++i)
      EXPECT_TRUE(got[i] == want[i]) << "answer " << i << ", seed " << seed << "\n"
                                     << got[i].text << "\n-----\n"
                                     << want[i].text;
  }
}

TEST_F(Batches, EveryAnswerIsItsSoloAnswer) {
  expect_solo_answers(open(160), {1, 2});
}

TEST_F(Batches, EveryAnswerIsItsSoloAnswerWith8BitActivations) {
  expect_solo_answers(open(160, /*int8=*/true), {1, 2});
}

TEST_F(Batches, ForcedTokensTakeThePlaceOfChosenOnes) {
  Engine engine = open(64);
  Asked asked = questions(engine)[0];
  const std::vector<int32_t> close = engine.tokenize("\n</think>\n\nSo").value();
  Session session = engine.new_session().value();
  Generation answer = Generation::start(session, asked.prompt, asked.options).value();
  Heard heard;
  while (!answer.done()) {
    const Feed next = answer.next(64);
    ASSERT_TRUE(feed({&next, 1}).has_value());
    if (heard.ids.size() == 3) answer.force(close);
    ASSERT_TRUE(answer.take(listen(heard)).has_value());
  }
  ASSERT_GE(heard.ids.size(), 3 + close.size());
  EXPECT_TRUE(std::equal(close.begin(), close.end(), heard.ids.begin() + 3)) << heard.text;
}

TEST_F(Batches, AFullContextIsRefusedBeforeAnythingChanges) {
  Engine engine = open(64);
  Session a = engine.new_session().value(), b = engine.new_session().value();
  ASSERT_TRUE(a.sync(std::vector<int32_t>(512, 300)).has_value());
  ASSERT_TRUE(b.sync(std::vector<int32_t>(10, 300)).has_value());
  const int32_t token = 300;
  const Feed feeds[] = {{&a, {&token, 1}, LogitRows::kLast, -1}, {&b, {&token, 1}, LogitRows::kLast, -1}};
  EXPECT_FALSE(feed(feeds).has_value());
  EXPECT_EQ(a.tokens().size(), 512u);
  EXPECT_EQ(b.tokens().size(), 10u);
  EXPECT_TRUE(feed({&feeds[1], 1}).has_value());
}

TEST(PromptParts, EndOnMultiplesOf64) {
  EXPECT_EQ(prompt_part(0, 1000, 256), 256);
  EXPECT_EQ(prompt_part(10, 1000, 256), 246);
  EXPECT_EQ(prompt_part(10, 1000, 100), 54);
  EXPECT_EQ(prompt_part(63, 1000, 64), 1);
  EXPECT_EQ(prompt_part(960, 1000, 256), 40);
  EXPECT_EQ(prompt_part(1000, 1000, 256), 0);
  EXPECT_EQ(prompt_part(0, 1000, 8), 8);
}

}  // namespace
}  // namespace forebay
