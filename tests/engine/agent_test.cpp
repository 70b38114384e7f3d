// A long conversation of an agent: tool calls and their results, reasoning that the template drops, edits of
// earlier messages, a restart in the middle. Every answer is that of a session which was given the whole
// prompt, and little of the prompts is read again.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "forebay/engine.h"

#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

const std::string kModel = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

class AgentConversation {
 public:
  AgentConversation() {
    talk_["messages"] = Json::array();
    talk_["tools"] = Json::array(
        {{{"type", "function"},
          {"function",
           {{"name", "read_file"},
            {"description", "The text of a file."},
            {"parameters", {{"type", "object"}, {"properties", {{"path", {{"type", "string"}}}}}}}}}}});
    talk_["add_generation_prompt"] = true;
    add("system",
        "You are a careful assistant that keeps a machine room in order. Read before you answer, answer in "
        "one sentence, and "
        "never guess: when you do not know a number, read the file that has it.");
  }

  void add(const std::string& role, const std::string& content) {
    talk_["messages"].push_back({{"role", role}, {"content", content}});
  }
  /// What comes before the answer of this turn.
  void prepare_turn(int turn) {
    if (turn % 3 == 2)
      add("tool", "rack " + std::to_string(turn) + ": 12 machines, 3 of them off; inlet 21 C, outlet " +
                      std::to_string(30 + turn % 9) + " C; fans at " + std::to_string(1000 + 37 * turn) +
                      " rpm");
    else
      add("user", "What is " + std::to_string(30 + turn * 7 % 60) + " + " +
                      std::to_string(10 + turn * 11 % 80) + "?");
    // A tool's output is folded into a line; a question is put right.
    if (turn == 15 || turn == 33) message(-3)["content"] = "(folded) 12 machines, 3 off";
    if (turn == 21) message(-1)["content"] = "What is 20 + 22?";
  }
  void add_answer(const std::string& text) {
    const size_t end = text.find("</think>");
    Json answer = {{"role", "assistant"}};
    if (end != std::string::npos) {
      answer["reasoning_content"] = text.substr(0, end);
      answer["content"] = text.substr(std::min(text.size(), text.find_first_not_of('\n', end + 8)));
    } else {
      answer["content"] = text;
    }
    talk_["messages"].push_back(std::move(answer));
  }
  std::string json() const { return talk_.dump(); }

 private:
  Json& message(int from_end) { return talk_["messages"][talk_["messages"].size() + from_end]; }
  Json talk_;
};

TEST(Agent, AnswersAreTheFreshOnesAndLittleIsReadAgain) {
  if (!std::filesystem::exists(kModel)) GTEST_SKIP() << "models/pebble.gguf is not there";
  // FOREBAY_LONG_TESTS=1: 50 turns, every answer compared; else fewer of both.
  const bool all = std::getenv("FOREBAY_LONG_TESTS") != nullptr;
  const int n_turns = all ? 50 : 24;
  const TemporaryDirectory folder;
  EngineOptions options;
  options.model = kModel;
  options.context = 8192;
  options.threads = 2;
  options.int8_activations = true;
  EngineOptions cached = options;
  cached.cache_dir = (folder / "cache").string();

  Result<Engine> opened = Engine::open(options);
  ASSERT_OK(opened);
  Engine plain = std::move(*opened);
  auto engine = std::make_unique<Engine>(Engine::open(cached).value());
  auto session = std::make_unique<Session>(engine->new_session().value());
  GenerateOptions greedy;
  greedy.sampling = plain.info().sampling;
  greedy.sampling.temperature = 0;
  greedy.max_tokens = 40;
  greedy.specials = true;
  const auto answer_of = [&](Session& s, const std::vector<int32_t>& ids, GenerateReport& report) {
    std::string text;
    const Result<GenerateReport> done = s.generate(ids, greedy, [&](const GeneratedToken& token) {
      text += token.text;
      return true;
    });
    EXPECT_OK(done);
    report = *done;
    return text;
  };

  AgentConversation talk;
  int64_t n_prompt = 0, n_prefilled = 0, n_generated = 0;
  for (int turn = 0; turn < n_turns; ++turn) {
    talk.prepare_turn(turn);
    if (turn == n_turns / 2) {
      session.reset();
      engine.reset();
      engine = std::make_unique<Engine>(Engine::open(cached).value());
      session = std::make_unique<Session>(engine->new_session().value());
    }
    const std::vector<int32_t> ids = plain.tokenize(plain.render_chat(talk.json()).value()).value();
    GenerateReport report, fresh_report;
    const std::string answer = answer_of(*session, ids, report);
    if (all || turn % 4 == 3 || turn == n_turns / 2) {
      Session fresh = plain.new_session().value();
      ASSERT_EQ(answer, answer_of(fresh, ids, fresh_report)) << "turn " << turn << ": " << report.prompt.why;
      EXPECT_EQ(report.n_generated, fresh_report.n_generated);
    }
    EXPECT_EQ(report.prompt.n_reused + report.prompt.n_prefilled, report.prompt.n_prompt);
    if (turn == n_turns / 2) {
      EXPECT_GT(report.prompt.n_loaded, report.prompt.n_prompt / 2) << report.prompt.why;
    }
    n_prompt += report.prompt.n_prompt;
    n_prefilled += report.prompt.n_prefilled;
    n_generated += report.n_generated;
    if (all)
      std::printf("turn %2d: %5d tokens, %4d read, %4d from a file: %s\n", turn,
                  static_cast<int>(report.prompt.n_prompt), static_cast<int>(report.prompt.n_prefilled),
                  static_cast<int>(report.prompt.n_loaded), report.prompt.why.c_str());
    talk.add_answer(answer);
  }
  const double share = static_cast<double>(n_prefilled) / static_cast<double>(n_prompt);
  std::printf("%d turns: %d tokens in prompts, %d read (%.1f %%), %d generated\n", n_turns,
              static_cast<int>(n_prompt), static_cast<int>(n_prefilled), 100 * share,
              static_cast<int>(n_generated));
  EXPECT_LE(share, all ? 0.12 : 0.2);
}

}  // namespace
}  // namespace forebay
