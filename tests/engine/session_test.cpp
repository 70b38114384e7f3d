// Sessions on the embedded model: what is reused, what is computed again, and that neither changes a bit.
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "tokenizer/tokenizer.h"

namespace forebay {
namespace {

const std::string kModel = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

EngineOptions with(int threads, int64_t chunk, int64_t context = 0) {
  EngineOptions options;
  options.model = kModel;
  options.threads = threads;
  options.chunk = chunk;
  options.context = context;
  return options;
}

Engine open(const EngineOptions& options = with(2, 256)) {
  Result<Engine> engine = Engine::open(options);
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  return std::move(engine).value();
}

class Sessions : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModel)) GTEST_SKIP() << "models/pebble.gguf is not there";
  }
};

std::vector<float> logits_of(Session& session) {
  return {session.logits().begin(), session.logits().end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<int32_t> prompt(const Engine& engine, const std::string& question) {
  return engine.tokenize("<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n<think>\n")
      .value();
}

TEST_F(Sessions, ExtendingKeepsTheStateAndTheBits) {
  Engine engine = open();
  const std::vector<int32_t> ids = prompt(engine, "What is 37 + 58? And what is twice that?");
  Session fresh = engine.new_session().value();
  ASSERT_TRUE(fresh.sync(ids).has_value());
  const std::vector<float> want = logits_of(fresh);

  Session session = engine.new_session().value();
  ASSERT_TRUE(session.sync(std::span(ids).first(10)).has_value());
  const SyncReport report = session.sync(ids).value();
  EXPECT_EQ(report.n_reused, 10);
  EXPECT_EQ(report.n_prefilled, static_cast<int64_t>(ids.size()) - 10);
  EXPECT_EQ(report.why, "extends the live state");
  EXPECT_TRUE(same_bits(want, logits_of(session)));

  const SyncReport again = session.sync(ids).value();
  EXPECT_EQ(again.n_prefilled, 0);
  EXPECT_TRUE(same_bits(want, logits_of(session)));
}

TEST_F(Sessions, PartingGoesBackToASnapshotOrStartsAgain) {
  Engine engine = open();
  const std::vector<int32_t> a = prompt(engine, "What is 12 + 30?");
  std::vector<int32_t> b = a, c = prompt(engine, "Define river.");
  const std::vector<int32_t> tail = engine.tokenize("12 + 30 is 42").value();
  b.insert(b.end(), tail.begin(), tail.end());
  Session fresh = engine.new_session().value();
  ASSERT_TRUE(fresh.sync(b).has_value());
  const std::vector<float> want = logits_of(fresh);

  Session session = engine.new_session().value();
  ASSERT_TRUE(session.sync(a).has_value());
  for (int32_t token : {100, 200, 300}) ASSERT_TRUE(session.append(token).has_value());
  const SyncReport report = session.sync(b).value();
  EXPECT_EQ(report.n_reused, static_cast<int64_t>(a.size()));
  EXPECT_NE(report.why.find("restored the snapshot at " + std::to_string(a.size())), std::string::npos)
      << report.why;
  EXPECT_TRUE(same_bits(want, logits_of(session)));

  const SyncReport other = session.sync(c).value();
  EXPECT_EQ(other.n_reused, 0);
  Session fresh_c = engine.new_session().value();
  ASSERT_TRUE(fresh_c.sync(c).has_value());
  EXPECT_TRUE(same_bits(logits_of(fresh_c), [&] {
    EXPECT_TRUE(session.sync(c).has_value());
    return logits_of(session);
  }()));
}

/// Logits of a session that was never anything else.
std::vector<float> fresh_logits(Engine& engine, const std::vector<int32_t>& ids) {
  Session session = engine.new_session().value();
  EXPECT_TRUE(session.sync(ids).has_value());
  return logits_of(session);
}

TEST_F(Sessions, TheSamePromptAgainComputesNothing) {
  Engine engine = open();
  const std::vector<int32_t> ids = prompt(engine, "What is 12 + 30?");
  const std::vector<float> want = fresh_logits(engine, ids);
  Session session = engine.new_session().value();
  ASSERT_TRUE(session.sync(ids).has_value());
  for (int32_t token : {100, 200, 300}) ASSERT_TRUE(session.append(token).has_value());
  const SyncReport again = session.sync(ids).value();
  EXPECT_EQ(again.n_prefilled, 0) << again.why;
  EXPECT_TRUE(same_bits(want, logits_of(session)));
}

/// The template drops an earlier turn's reasoning, so that the next prompt parts from the live state where
/// the answer began: after the last turn's start, before the end of the prompt.
TEST_F(Sessions, AnAnswerThatIsRenderedOtherwiseCostsItselfOnly) {
  Engine engine = open();
  const auto ids = [&](const std::string& text) { return engine.tokenize(text).value(); };
  const std::string first =
      "<|im_start|>system\nYou are careful, brief and polite, and you answer in whole sentences when you can."
      "<|im_end|>\n<|im_start|>user\nWhat is 12 + 30?<|im_end|>\n<|im_start|>assistant\n";
  const std::vector<int32_t> one = ids(first + "<think>\n");
  const std::vector<int32_t> two = ids(
      first + "42.<|im_end|>\n<|im_start|>user\nAnd 12 + 31?<|im_end|>\n<|im_start|>assistant\n<think>\n");
  Session session = engine.new_session().value();
  ASSERT_TRUE(session.sync(one).has_value());
  for (int32_t token : ids("Adding the two numbers.\n</think>\n\n42.<|im_end|>"))
    ASSERT_TRUE(session.append(token).has_value());
  const SyncReport report = session.sync(two).value();
  const auto n_first = static_cast<int64_t>(ids(first).size());
  EXPECT_GE(report.n_reused, n_first - 8) << report.why;
  EXPECT_LE(report.n_reused, n_first) << report.why;
  EXPECT_TRUE(same_bits(fresh_logits(engine, two), logits_of(session)));

  // Another question after the same system prompt reuses that.
  const std::vector<int32_t> three =
      ids(first.substr(0, first.find("<|im_start|>user")) +
          "<|im_start|>user\nDefine river.<|im_end|>\n<|im_start|>assistant\n<think>\n");
  const SyncReport other = session.sync(three).value();
  EXPECT_GE(other.n_reused, 16) << other.why;
  EXPECT_TRUE(same_bits(fresh_logits(engine, three), logits_of(session)));
}

/// The last message is edited: what was read and said before it stays.
TEST_F(Sessions, AnEditedLastMessageCostsItselfOnly) {
  Engine engine = open();
  const auto ids = [&](const std::string& text) { return engine.tokenize(text).value(); };
  const std::string first =
      "<|im_start|>user\nWhat is 12 + 30?<|im_end|>\n<|im_start|>assistant\n42.<|im_end|>";
  const auto with_question = [&](const std::string& question) {
    return ids(first + "\n<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n");
  };
  Session session = engine.new_session().value();
  const std::vector<int32_t> one = ids(first);
  ASSERT_TRUE(session.sync(std::span(one).first(one.size() - 4)).has_value());
  for (size_t i = one.size() - 4; i < one.size(); ++i) ASSERT_TRUE(session.append(one[i]).has_value());
  ASSERT_TRUE(session.sync(with_question("And 12 + 31?")).has_value());
  const std::vector<int32_t> edited = with_question("Define river.");
  const SyncReport report = session.sync(edited).value();
  EXPECT_GE(report.n_reused, static_cast<int64_t>(one.size())) << report.why;
  EXPECT_TRUE(same_bits(fresh_logits(engine, edited), logits_of(session)));
}

TEST_F(Sessions, ShortPromptsAreReusedAndGrow) {
  Engine engine = open();
  std::vector<int32_t> ids;
  Session session = engine.new_session().value();
  for (int turn = 0; turn < 50; ++turn) {
    for (int i = 0; i < 20; ++i) ids.push_back(100 + (turn * 31 + i * 7) % 900);
    const SyncReport report = session.sync(ids).value();
    EXPECT_EQ(report.n_prefilled, 20) << "turn " << turn << ": " << report.why;
  }
  EXPECT_TRUE(same_bits(fresh_logits(engine, ids), logits_of(session)));
}

TEST_F(Sessions, RewindToAnyPoint) {
  Engine engine = open();
  std::vector<int32_t> ids;
  for (int i = 0; i < 150; ++i) ids.push_back(100 + i * 7 % 900);
  Session session = engine.new_session().value();
  for (int64_t to : {149, 130, 129, 128, 100, 67, 66, 65, 64, 63, 5, 4, 3, 1}) {
    ASSERT_TRUE(session.sync(ids).has_value());
    const SyncReport report = session.rewind(to).value();
    EXPECT_EQ(static_cast<int64_t>(session.tokens().size()), to) << report.why;
    EXPECT_TRUE(same_bits(fresh_logits(engine, {ids.begin(), ids.begin() + to}), logits_of(session))) << to;
  }
  EXPECT_EQ(session.rewind(2).error().message, "rewind to token 2: the session has 1");
  ASSERT_TRUE(session.rewind(0).has_value());
  EXPECT_TRUE(session.tokens().empty());
}

TEST_F(Sessions, SnapshotsKeepTheirBudget) {
  EngineOptions options = with(2, 256);
  options.snapshot_bytes = 1;
  Engine engine = open(options);
  const std::vector<int32_t> a = prompt(engine, "What is 12 + 30?"), b = prompt(engine, "Define river.");
  Session session = engine.new_session().value();
  ASSERT_TRUE(session.sync(a).has_value());
  const SyncReport report = session.sync(b).value();
  EXPECT_EQ(report.n_reused, 0);
  EXPECT_NE(report.why.find("before every snapshot"), std::string::npos) << report.why;
  EXPECT_TRUE(same_bits(fresh_logits(engine, b), logits_of(session)));
}

std::string generate(Engine& engine, const GenerateOptions& options, GenerateReport* report = nullptr,
                     const std::string& question = "What is 37 + 58?") {
  Session session = engine.new_session().value();
  std::string text;
  const Result<GenerateReport> done =
      session.generate(prompt(engine, question), options, [&](const GeneratedToken& token) {
        text += token.text;
        return true;
      });
  EXPECT_TRUE(done.has_value()) << done.error().message;
  if (report != nullptr) *report = *done;
  return text;
}

TEST_F(Sessions, AnswersTheArithmetic) {
  Engine engine = open();
  GenerateOptions greedy;
  greedy.sampling.temperature = 0;
  greedy.max_tokens = 80;
  GenerateReport report;
  const std::string text = generate(engine, greedy, &report);
  EXPECT_NE(text.find("95"), std::string::npos) << text;
  EXPECT_EQ(report.reason, FinishReason::kStopToken);
}

TEST_F(Sessions, SameSeedSameTextWhateverTheThreadsAndChunks) {
  GenerateOptions options;
  options.sampling.top_k = 50;
  options.sampling.temperature = 1.2f;
  options.sampling.seed = 7;
  options.max_tokens = 40;
  Engine one = open(with(1, 64)), two = open(with(2, 256));
  const std::string question = "Define river.";
  const std::string text = generate(one, options, nullptr, question);
  EXPECT_EQ(text, generate(two, options, nullptr, question));
  options.sampling.seed = 8;
  EXPECT_NE(text, generate(two, options, nullptr, question));
}

TEST_F(Sessions, EndsWhereItShould) {
  Engine engine = open();
  GenerateOptions options;
  options.sampling.temperature = 0;
  GenerateReport report;
  options.max_tokens = 3;
  generate(engine, options, &report);
  EXPECT_EQ(report.n_generated, 3);
  EXPECT_EQ(report.reason, FinishReason::kLength);
  options.max_tokens = 0;
  EXPECT_EQ(generate(engine, options, &report), "");
  EXPECT_EQ(report.n_generated, 0);
  options.max_tokens = -1;
  options.stop = {"+"};
  const std::string text = generate(engine, options, &report);
  EXPECT_EQ(report.reason, FinishReason::kStopString);
  EXPECT_EQ(text.find('+'), std::string::npos);

  Engine small = open(with(2, 256, 24));
  options.stop.clear();
  options.ignore_stop_tokens = true;
  generate(small, options, &report);
  EXPECT_EQ(report.reason, FinishReason::kContextFull);

  Session session = small.new_session().value();
  const Result<SyncReport> too_long = session.sync(std::vector<int32_t>(25, 5));
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().message, "prompt: 25 tokens, the context holds 24 (--context raises it)");
}

TEST_F(Sessions, CancelledPromptsKeepWhatWasDone) {
  Engine engine = open(with(2, 8));
  const std::vector<int32_t> ids(64, 300);
  Session session = engine.new_session().value();
  std::stop_source stop;
  const Result<SyncReport> cancelled = session.sync(
      ids,
      [&](int64_t done, int64_t) {
        if (done >= 24) stop.request_stop();
      },
      stop.get_token());
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, Code::kCancelled);
  const SyncReport rest = session.sync(ids).value();
  EXPECT_EQ(rest.n_reused, 24);
  Session fresh = engine.new_session().value();
  ASSERT_TRUE(fresh.sync(ids).has_value());
  const std::vector<float> want = logits_of(fresh);
  ASSERT_TRUE(session.sync(ids).has_value());
  EXPECT_TRUE(same_bits(want, logits_of(session)));
}

TEST_F(Sessions, TheMemoryLimitIsKept) {
  EngineOptions options = with(2, 256);
  options.memory_limit_bytes = 1 << 20;
  const Result<Engine> engine = Engine::open(options);
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code, Code::kOutOfMemory);
}

TEST_F(Sessions, BadOptionsNameTheField) {
  EXPECT_EQ(Engine::open({}).error().message, "model: no file given");
  EXPECT_EQ(Engine::open(with(-1, 256)).error().message, "threads: -1, expected 0 to 1024");
  EXPECT_EQ(Engine::open(with(1, -1)).error().message, "chunk: -1, expected 0 to 65536");
}

}  // namespace
}  // namespace forebay
