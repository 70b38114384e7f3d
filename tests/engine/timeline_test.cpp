// Timelines on the embedded model that outlive their session: files, and a directory that keeps them.
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "engine/session_impl.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"
#include "tokenizer/tokenizer.h"

namespace forebay {
namespace {

const std::string kModel = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

class Timelines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModel)) GTEST_SKIP() << "models/pebble.gguf is not there";
  }

  EngineOptions options(bool cached = true) {
    EngineOptions o;
    o.model = kModel;
    o.threads = 2;
    o.context = 2048;
    o.int8_activations = true;
    if (cached) o.cache_dir = (folder_ / "cache").string();
    return o;
  }
  static Engine open(const EngineOptions& o) {
    Result<Engine> engine = Engine::open(o);
    EXPECT_OK(engine);
    return std::move(engine).value();
  }

  TemporaryDirectory folder_;
};

std::vector<float> logits_of(Session& session) {
  return {session.logits().begin(), session.logits().end()};
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
std::vector<int32_t> some_ids(int64_t n, int salt = 0) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(static_cast<int32_t>(100 + (i * 131 + salt * 977 + i * i % 89) % 9000));
  return ids;
}
std::vector<int32_t> operator+(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(Timelines, AFileGoesOnExactlyInAnotherEngineAndWithTheDraftHead) {
  for (bool draft : {false, true}) {
    EngineOptions o = options(/*cached=*/false);
    o.load_mtp = draft;
    const std::vector<int32_t> ids = some_ids(257), more = some_ids(5, 3);
    std::vector<float> want, want_draft;
    const std::string file = (folder_ / "s.session").string();
    // One row of the draft head at a time: hidden state of the last token, and the token after it.
    const auto draft_step = [&](Engine& engine, Session& session, int32_t token) {
      SequenceState& state = session.impl().state;
      const std::vector<float> hidden(engine.model().config().wide(), 0.25f);
      const Result<ForwardOutput> out = engine.model().draft(
          state, TensorView<const float>(hidden.data(), 1, static_cast<int64_t>(hidden.size())), {&token, 1},
          LogitRows::kLast);
      EXPECT_OK(out);
      return std::vector<float>(out->logits.row(0), out->logits.row(0) + out->logits.cols);
    };
    {
      Engine engine = open(o);
      Session session = engine.new_session().value();
      ASSERT_OK(session.sync(ids));
      if (draft)
        for (int32_t token : {7, 8, 9}) draft_step(engine, session, token);
      ASSERT_OK(session.save(file));
      ASSERT_OK(session.sync(ids + more));
      want = logits_of(session);
      if (draft) want_draft = draft_step(engine, session, 10);
    }
    Engine engine = open(o);
    Session session = engine.new_session().value();
    const Result<int64_t> n = session.load(file);
    ASSERT_OK(n);
    EXPECT_EQ(*n, 257);
    // Exactly what is new is computed.
    const SyncReport report = session.sync(ids + more).value();
    EXPECT_EQ(report.n_prefilled, 5) << report.why;
    EXPECT_TRUE(same_bits(want, logits_of(session)));
    if (draft) {
      EXPECT_TRUE(same_bits(want_draft, draft_step(engine, session, 10)));
    }
    // The same prompt as was saved: its logits are in the file.
    ASSERT_OK(session.load(file));
    EXPECT_EQ(session.sync(ids).value().n_prefilled, 0);

    o.load_mtp = !draft;
    Engine other = open(o);
    Session elsewhere = other.new_session().value();
    EXPECT_TRUE(fails_with(elsewhere.load(file), Code::kInvalidArgument, "draft: saved with"));
  }
}

/// The template drops the reasoning of an earlier turn: the next prompt parts from the saved one where its
/// answer began.
TEST_F(Timelines, AFileHasTheStartOfItsAnswer) {
  const std::string file = (folder_ / "s.session").string();
  const std::string first =
      "<|im_start|>system\nYou are careful, brief and polite, and you answer in whole sentences when you can."
      "<|im_end|>\n<|im_start|>user\nWhat is 12 + 30?<|im_end|>\n<|im_start|>assistant\n";
  GenerateOptions greedy;
  greedy.sampling.temperature = 0;
  greedy.max_tokens = 30;
  {
    Engine engine = open(options(/*cached=*/false));
    Session session = engine.new_session().value();
    ASSERT_OK(session.generate(engine.tokenize(first + "<think>\n").value(), greedy,
                               [](const GeneratedToken&) { return true; }));
    ASSERT_OK(session.save(file));
  }
  Engine engine = open(options(false));
  Session session = engine.new_session().value(), whole = engine.new_session().value();
  ASSERT_OK(session.load(file));
  const auto n_first = static_cast<int64_t>(engine.tokenize(first).value().size());
  const std::vector<int32_t> next =
      engine
          .tokenize(first +
                    "42.<|im_end|>\n<|im_start|>user\nAnd 12 + 31?<|im_end|>\n<|im_start|>assistant\n")
          .value();
  const SyncReport report = session.sync(next).value();
  EXPECT_GE(report.n_reused, n_first - 8) << report.why;
  ASSERT_OK(whole.sync(next));
  EXPECT_TRUE(same_bits(logits_of(whole), logits_of(session)));
}

TEST_F(Timelines, AConversationIsFoundAfterARestart) {
  const std::vector<int32_t> a = some_ids(120, 1), b = some_ids(90, 2);
  {
    Engine engine = open(options());
    Session session = engine.new_session().value();
    for (const auto& ids : {a, b}) {
      ASSERT_OK(session.sync(ids));
      for (int32_t token : {500, 501}) ASSERT_OK(session.append(token));
      engine.cache_dir_stats();
      session.end_turn();
    }
  }
  Engine engine = open(options());
  Session session = engine.new_session().value();
  for (const auto& ids : {b, a}) {
    const std::vector<int32_t> next = ids + std::vector<int32_t>{500, 501} + some_ids(7, 9);
    const SyncReport report = session.sync(next).value();
    EXPECT_GE(report.n_loaded, static_cast<int64_t>(ids.size()) - 16) << report.why;
    EXPECT_EQ(report.n_loaded, report.n_reused);
    EXPECT_NE(report.why.find("loaded"), std::string::npos) << report.why;
    Engine plain = open(options(false));
    Session whole = plain.new_session().value();
    ASSERT_OK(whole.sync(next));
    EXPECT_TRUE(same_bits(logits_of(whole), logits_of(session)));
  }
}

TEST_F(Timelines, ASharedPrefixIsLearnedOnceAndThenFree) {
  Engine engine = open(options());
  const std::vector<int32_t> system = some_ids(200, 1);
  const auto turn = [&](int salt) {
    Session session = engine.new_session().value();
    const SyncReport report = session.sync(system + some_ids(40, salt)).value();
    session.end_turn();
    EXPECT_OK(session.append(300));
    engine.cache_dir_stats();
    return report;
  };
  EXPECT_EQ(turn(2).n_reused, 0);
  EXPECT_EQ(turn(3).n_reused, 0) << "learned here";
  for (int salt : {4, 5, 6}) {
    const SyncReport report = turn(salt);
    EXPECT_EQ(report.n_loaded, 200) << report.why;
    EXPECT_EQ(report.n_prefilled, 40);
  }
  // What is one prefix is not learned again.
  const CacheDirStats stats = *engine.cache_dir_stats();
  EXPECT_EQ(stats.n_saved, 6u) << "five turns and what they share";
  Session last = engine.new_session().value();
  ASSERT_OK(last.sync(system + some_ids(40, 7)));
  Engine plain = open(options(false));
  Session whole = plain.new_session().value();
  ASSERT_OK(whole.sync(system + some_ids(40, 7)));
  EXPECT_TRUE(same_bits(logits_of(whole), logits_of(last)));
}

TEST_F(Timelines, ADamagedFileIsReadAgain) {
  const std::vector<int32_t> a = some_ids(120, 1), next = a + some_ids(20, 2);
  {
    Engine engine = open(options());
    Session session = engine.new_session().value();
    ASSERT_OK(session.sync(a));
    session.end_turn();
  }
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "cache"))
    if (file.path().extension() == ".session") {
      const auto storage = make_posix_storage();
      std::vector<std::byte> bytes = read_file(*storage, file.path()).value();
      bytes[bytes.size() / 2] ^= std::byte{64};
      AtomicFile out = AtomicFile::create(*storage, file.path()).value();
      ASSERT_OK(out.file().append(bytes));
      ASSERT_OK(out.commit());
    }
  Engine engine = open(options());
  Session session = engine.new_session().value();
  const SyncReport report = session.sync(next).value();
  EXPECT_EQ(report.n_loaded, 0);
  EXPECT_EQ(report.n_reused, 0);
  EXPECT_NE(report.why.find("checksum"), std::string::npos) << report.why;
  EXPECT_EQ(engine.cache_dir_stats()->n_files, 0u);
  Engine plain = open(options(false));
  Session whole = plain.new_session().value();
  ASSERT_OK(whole.sync(next));
  EXPECT_TRUE(same_bits(logits_of(whole), logits_of(session)));
}

TEST_F(Timelines, ADirectoryThatCannotBeWrittenIsSaidOnce) {
  EngineOptions o = options();
  o.cache_dir = "/dev/null/cache";
  EXPECT_TRUE(fails_with(Engine::open(o), Code::kIo, "/dev/null/cache"));
}

}  // namespace
}  // namespace forebay
