// Sessions that reuse what follows an edit: counts, words, the policy, and what is exact.
#include <cmath>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "engine/session_impl.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

const std::string kModel = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

std::string turn(const std::string& role, const std::string& text) {
  return "<|im_start|>" + role + "\n" + text + "<|im_end|>\n";
}

class EditReuseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModel)) GTEST_SKIP() << "models/pebble.gguf is not there";
  }

  static Engine open(bool reuse, double max_staleness = 1) {
    EngineOptions options;
    options.model = kModel;
    options.threads = 2;
    options.context = 1024;
    options.reuse_edits = reuse;
    options.max_staleness = max_staleness;
    return Engine::open(options).value();
  }

  /// A chat whose second message is `first`, up to the answer to its last question.
  static std::string chat(const std::string& first, const std::string& more = {}) {
    std::string out = turn("system", "You answer questions about a shop.") + turn("user", first);
    out += turn("assistant", "I have read it.");
    for (int i = 1; i < 8; ++i)
      out += turn("user", "What is " + std::to_string(17 * i) + " + " + std::to_string(29 + i) + "?") +
             turn("assistant", std::to_string(18 * i + 29));
    return out + more + "<|im_start|>assistant\n<think>\n\n</think>\n\n";
  }
  static std::vector<float> logits_of(Session& session) {
    return {session.logits().begin(), session.logits().end()};
  }
  static std::vector<float> fresh(Engine& engine, const std::vector<int32_t>& ids) {
    Session session = engine.new_session().value();
    EXPECT_OK(session.sync(ids));
    return logits_of(session);
  }
};

double kl(const std::vector<float>& p, const std::vector<float>& q) {
  double zp = 0, zq = 0, out = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    zp += std::exp(static_cast<double>(p[i]));
    zq += std::exp(static_cast<double>(q[i]));
  }
  for (size_t i = 0; i < p.size(); ++i)
    out += std::exp(p[i] - std::log(zp)) * (p[i] - std::log(zp) - q[i] + std::log(zq));
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

const std::string kLong =
    "The shop sells mugs at 12 each, plates at 18 each and lamps at 45 each. It is closed on Mondays. Anna "
    "takes care of the mugs in Lima, Omar of the lamps in Oslo.";

TEST_F(EditReuseTest, OffReadsAgainAndIsExact) {
  Engine engine = open(false);
  Session session = engine.new_session().value();
  ASSERT_OK(session.sync(engine.tokenize(chat(kLong)).value()));
  const std::vector<int32_t> edited =
      engine.tokenize(chat("The shop sells mugs.", turn("user", "What is 5 + 6?"))).value();
  const SyncReport report = session.sync(edited).value();
  EXPECT_EQ(report.n_moved, 0);
  EXPECT_TRUE(same_bits(logits_of(session), fresh(engine, edited)));
}

TEST_F(EditReuseTest, FilesHoldExactStatesOnly) {
  const TemporaryDirectory directory;
  const std::string path = (directory / "state").string();
  Engine engine = open(true);
  Session session = engine.new_session().value();
  ASSERT_OK(session.sync(engine.tokenize(chat(kLong)).value()));
  ASSERT_OK(session.save(path));
  std::filesystem::remove(path);
  ASSERT_GT(session.sync(engine.tokenize(chat("Mugs.", turn("user", "What is 5 + 6?"))).value())->n_moved, 0);
  EXPECT_TRUE(fails_with(session.save(path), Code::kUnsupported, path, "--reuse-edits"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(EditReuseTest, OnMovesAndSaysSo) {
  Engine engine = open(true);
  // Texts of several lengths, so that every number of pads occurs.
  for (const std::string text : {"Mugs.", "Mugs and plates.", "The shop sells mugs and lamps.", ""}) {
    Session session = engine.new_session().value();
    ASSERT_OK(session.sync(engine.tokenize(chat(kLong)).value()));
    const std::vector<int32_t> edited = engine.tokenize(chat(text, turn("user", "What is 5 + 6?"))).value();
    const SyncReport report = session.sync(edited).value();
    EXPECT_GT(report.n_moved, 100) << report.why;
    EXPECT_NE(report.why.find("edited at"), std::string::npos) << report.why;
    EXPECT_EQ(report.n_prompt, static_cast<int64_t>(edited.size()));
    EXPECT_EQ(report.n_reused + report.n_prefilled, report.n_prompt);
    EXPECT_GT(report.n_reused, report.n_moved);
    const std::vector<int64_t> pads = session.impl().edits->pads();
    EXPECT_EQ(session.tokens().size(), edited.size() + pads.size());
    EXPECT_LT(pads.size(), 4u);
    EXPECT_FALSE(session.impl().edits->is_exact_to(report.n_prompt));
    EXPECT_LT(kl(fresh(engine, edited), logits_of(session)), 0.05) << report.why;

    // The pads are remembered: more of the same conversation goes on from here.
    const SyncReport again = session.sync(edited).value();
    EXPECT_EQ(again.n_prefilled, 0) << again.why;
    std::vector<int32_t> more = edited;
    for (int32_t id : {100, 200, 300}) more.push_back(id);
    const SyncReport extended = session.sync(more).value();
    EXPECT_EQ(extended.n_prefilled, 3) << extended.why;
    EXPECT_EQ(extended.why, "extends the live state");

    // Before the edit everything is as read.
    const std::vector<int32_t> start =
        engine.tokenize(turn("system", "You answer questions about a shop.")).value();
    const SyncReport back = session.rewind(static_cast<int64_t>(start.size())).value();
    EXPECT_EQ(back.n_prompt, static_cast<int64_t>(start.size()));
    EXPECT_TRUE(session.impl().edits->is_exact_to(back.n_prompt));
    EXPECT_TRUE(same_bits(logits_of(session), fresh(engine, start)));
  }
}

TEST_F(EditReuseTest, TooStaleIsReadAgainAndExact) {
  Engine engine = open(true, 0);
  for (const std::string text : {"Mugs.", "Mugs and plates.", "The shop sells mugs and lamps.", ""}) {
    Session session = engine.new_session().value();
    ASSERT_OK(session.sync(engine.tokenize(chat(kLong)).value()));
    const std::vector<int32_t> edited = engine.tokenize(chat(text, turn("user", "What is 5 + 6?"))).value();
    const SyncReport report = session.sync(edited).value();
    EXPECT_EQ(report.n_moved, 0);
    EXPECT_NE(report.why.find("the limit is 0: read again"), std::string::npos) << report.why;
    EXPECT_EQ(session.tokens().size(), edited.size());
    EXPECT_TRUE(same_bits(logits_of(session), fresh(engine, edited)));
    EXPECT_TRUE(session.impl().edits->is_exact_to(report.n_prompt));
  }
}

TEST_F(EditReuseTest, SeveralEditsAndAnswersInOneConversation) {
  Engine engine = open(true);
  Session session = engine.new_session().value();
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 8;
  const auto ask = [&](const std::string& first, const std::string& more) {
    const std::vector<int32_t> ids = engine.tokenize(chat(first, more)).value();
    return session.generate(ids, options, [](const GeneratedToken&) { return true; }).value().prompt;
  };
  ask(kLong, "");
  const SyncReport first = ask("Mugs and plates.", turn("user", "And 3 + 4?"));
  EXPECT_GT(first.n_moved, 0) << first.why;
  const SyncReport second =
      ask("Mugs, plates, lamps.", turn("user", "And 3 + 4?") + turn("user", "And 5 + 9?"));
  EXPECT_EQ(second.n_reused + second.n_prefilled, second.n_prompt) << second.why;
  session.reset();
  EXPECT_TRUE(session.impl().edits->pads().empty());
  EXPECT_EQ(ask(kLong, "").why, "new session");
}

TEST_F(EditReuseTest, OptionsAreChecked) {
  EngineOptions options;
  options.model = kModel;
  options.max_staleness = 2;
  EXPECT_TRUE(fails_with(Engine::open(options), Code::kInvalidArgument, "max_staleness: 2"));
}

}  // namespace
}  // namespace forebay
