// forebay session, and runs that save, load and keep states: each in a process of its own.
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

const std::string kPebble = FOREBAY_SOURCE_DIR "/models/pebble.gguf";

class SessionCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << "models/pebble.gguf is not there";
  }
  std::string file(const std::string& name) { return (folder_ / name).string(); }
  /// Continues a text by n tokens.
  nlohmann::json run(const std::string& text, int n, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run", "-m", kPebble,           "--raw",  "-p", text, "--temp",
                                          "0",   "-n", std::to_string(n), "--json", "-q", "-c", "512"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run_program(arguments);
    EXPECT_EQ(finished.code, 0) << finished;
    return nlohmann::json::parse(finished.out, nullptr, false);
  }
  TemporaryDirectory folder_;
};

constexpr const char* kText =
    "The river rises in the hills and is joined by two streams before it comes to the weir, where";

TEST_F(SessionCommands, ASavedRunGoesOnInAnotherProcess) {
  run(kText, 0, {"--save-session", file("a.session")});
  const nlohmann::json fresh = run(std::string(kText) + " the", 12, {});
  const nlohmann::json restored = run(std::string(kText) + " the", 12, {"--load-session", file("a.session")});
  EXPECT_EQ(restored["text"], fresh["text"]);
  EXPECT_EQ(restored["ids"], fresh["ids"]);
  EXPECT_EQ(restored["prompt_tokens"], fresh["prompt_tokens"]);
  EXPECT_EQ(fresh["reused_tokens"], 0);
  EXPECT_GT(restored["reused_tokens"], 10) << restored["reuse"];

  EXPECT_EQ(run_program({"session", "check", file("a.session"), "-m", kPebble}).out,
            file("a.session") + ": usable\n");
  // Options that change results are named.
  EXPECT_TRUE(is_error(run_program({"run", "-m", kPebble, "--raw", "-p", kText, "-q", "--activations", "f32",
                                    "--load-session", file("a.session")}),
                       1, {"a.session", "activations: saved with int8, this run has f32"}));
  // A branch, and a whole file made of it.
  EXPECT_EQ(run_program({"session", "fork", file("a.session"), "-o", file("b.session")}).code, 0);
  EXPECT_EQ(run_program({"session", "export", file("b.session"), "-o", file("c.session")}).code, 0);
  for (const char* name : {"b.session", "c.session"})
    EXPECT_EQ(run(std::string(kText) + " the", 12, {"--load-session", file(name)})["ids"], fresh["ids"])
        << name;
  const nlohmann::json shown =
      nlohmann::json::parse(run_program({"session", "show", file("b.session"), "--json"}).out);
  EXPECT_EQ(shown["parent"], "a.session");
  const nlohmann::json list =
      nlohmann::json::parse(run_program({"session", "list", folder_.path(), "--json"}).out);
  EXPECT_EQ(list["sessions"].size(), 3u);
  EXPECT_TRUE(is_error(run_program({"session", "rm", file("a.session")}), 1,
                       {"a.session", "b.session goes on from it"}));
  EXPECT_EQ(run_program({"session", "rm", file("a.session"), file("b.session")}).code, 0);
  EXPECT_EQ(run_program({"session", "check", file("c.session")}).code, 0);
}

TEST_F(SessionCommands, CheckSaysWhyOnStandardOutput) {
  run(kText, 1, {"--save-session", file("a.session")});
  std::filesystem::copy_file(file("a.session"), file("b.session"));
  std::filesystem::resize_file(file("b.session"), 100000);
  Finished checked = run_program({"session", "check", file("b.session")});
  EXPECT_EQ(checked.code, 1);
  EXPECT_NE(checked.out.find("100000 bytes, its header says"), std::string::npos) << checked;
  checked = run_program({"session", "check", file("none.session"), "--json"});
  EXPECT_EQ(checked.code, 1);
  EXPECT_EQ(nlohmann::json::parse(checked.out)["usable"], false);
  EXPECT_TRUE(is_error(run_program({"session"}), 2, {"no action"}));
  EXPECT_TRUE(is_error(run_program({"session", "eat", "x"}), 2, {"'eat'"}));
  EXPECT_TRUE(is_error(run_program({"session", "fork", "x"}), 2, {"-o"}));
  EXPECT_TRUE(is_error(run_program({"session", "rm", kPebble}), 1, {"not a session"}));
}

TEST_F(SessionCommands, ACacheDirectoryOutlivesTheProcess) {
  const std::vector<std::string> cached = {"--cache-dir", file("cache")};
  const std::string text =
      std::string(kText) + " it turns the wheel of an old mill, and then goes on to the sea.";
  const nlohmann::json first = run(text, 8, cached);
  EXPECT_EQ(first["reused_tokens"], 0);
  const nlohmann::json again = run(text + " Beyond", 8, cached);
  EXPECT_EQ(run(text + " Beyond", 8, {})["ids"], again["ids"]);
  const nlohmann::json list =
      nlohmann::json::parse(run_program({"session", "list", file("cache"), "--json"}).out);
  EXPECT_GE(list["sessions"].size(), 1u);
}

}  // namespace
}  // namespace forebay::cli
