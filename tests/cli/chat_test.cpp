// The chat, as a person has it: on a terminal, key by key.
#include <csignal>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.h"
#include "scripted_model.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

class Chat : public ::testing::Test {
 protected:
  std::string file(const char* name) const { return (directory_ / name).string(); }
  /// A greedy chat with the scripted model.
  static std::vector<std::string> chat(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", "-m", scripted_model(), "--temp", "0"});
    return more;
  }
  /// What /save writes now.
  nlohmann::json saved(TerminalProgram& program, const char* name = "chat.json") const {
    program.type("/save " + file(name) + "\r");
    EXPECT_TRUE(program.sees("saved") && program.sees("> ")) << program.seen();
    std::ifstream stream(file(name));
    return nlohmann::json::parse(stream, nullptr, false);
  }

  TemporaryDirectory directory_;
};

#define ASSERT_SEES(program, text) ASSERT_TRUE((program).sees(text)) << (program).seen()

TEST_F(Chat, KeepsTheConversation) {
  TerminalProgram program(chat());
  ASSERT_SEES(program, "/help");
  program.type("first\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  ASSERT_SEES(program, "scripted: ");
  program.type("second\r");
  // What the session holds is not read again.
  ASSERT_SEES(program, "reused)");
  const nlohmann::json json = saved(program);
  EXPECT_EQ(json["messages"], nlohmann::json::parse(R"([
      {"role": "user", "content": "first"},
      {"role": "assistant", "content": "42", "reasoning_content": "hm"},
      {"role": "user", "content": "second"},
      {"role": "assistant", "content": "42", "reasoning_content": "hm"}])"));
  program.type("/quit\r");
  EXPECT_EQ(program.finish(), 0);
  // The file is what `forebay template` reads.
  EXPECT_TRUE(run_program({"template", "-m", scripted_model(), "--json", file("chat.json")})
                  .out.starts_with("<|im_start|>user\nfirst<|im_end|>\n"));
}

TEST_F(Chat, ObeysCommands) {
  TerminalProgram program(chat({"--system", "Old."}));
  program.type("/help\r");
  ASSERT_SEES(program, "/load FILE");
  program.type("/system Be brief.\r");
  ASSERT_SEES(program, "system: Be brief.");
  program.type("/think off\r");
  ASSERT_SEES(program, "thinking off");
  program.type("hello\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  nlohmann::json json = saved(program);
  EXPECT_EQ(json["enable_thinking"], false);
  ASSERT_EQ(json["messages"].size(), 3u);
  EXPECT_EQ(json["messages"][0]["content"], "Be brief.");
  EXPECT_FALSE(json["messages"][2].contains("reasoning_content"));

  program.type("/reset\r");
  ASSERT_SEES(program, "forgotten");
  EXPECT_EQ(saved(program, "empty.json")["messages"].size(), 1u);
  program.type("/load " + file("chat.json") + "\r");
  ASSERT_SEES(program, "2 messages");
  EXPECT_EQ(saved(program, "again.json"), json);

  program.type("/system -\r");
  ASSERT_SEES(program, "no system message");
  program.type("/think maybe\r");
  ASSERT_SEES(program, "usage: /think");
  program.type("/save\r");
  ASSERT_SEES(program, "usage: /save");
  program.type("/load " + file("none.json") + "\r");
  ASSERT_SEES(program, "none.json");
  program.type("/dance\r");
  ASSERT_SEES(program, "no command /dance");
  ASSERT_SEES(program, "> ");
  program.type("\x04");
  EXPECT_EQ(program.finish(), 0);
}

TEST_F(Chat, CtrlCStopsTheAnswerAndKeepsTheChat) {
  TerminalProgram program(chat({"-c", "1000000", "--logit-bias", "258=-inf"}));
  ASSERT_SEES(program, "> ");
  program.type("go\r");
  ASSERT_SEES(program, "424242");
  program.type("\x03");
  ASSERT_SEES(program, "interrupted");
  const nlohmann::json json = saved(program);
  ASSERT_EQ(json["messages"].size(), 2u);
  EXPECT_TRUE(json["messages"][1]["content"].get<std::string>().starts_with("424242"));
  // And once more, as a signal.
  program.type("again\r");
  ASSERT_SEES(program, "424242");
  program.signal(SIGINT);
  ASSERT_SEES(program, "interrupted");
  ASSERT_SEES(program, "> ");
  // At the prompt, it leaves.
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130);
}

TEST_F(Chat, CtrlCAtThePromptWarnsOnce) {
  TerminalProgram program(chat());
  ASSERT_SEES(program, "> ");
  program.type("half a line\x03");
  ASSERT_SEES(program, "Ctrl-C again leaves");
  program.type("hello\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  EXPECT_EQ(saved(program)["messages"][0]["content"], "hello");
  program.type("\x03");
  ASSERT_SEES(program, "Ctrl-C again leaves");
  ASSERT_SEES(program, "> ");
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130);
}

TEST_F(Chat, SignalsAtThePrompt) {
  TerminalProgram program(chat());
  ASSERT_SEES(program, "> ");
  program.signal(SIGINT);
  ASSERT_SEES(program, "Ctrl-C again leaves");
  ASSERT_SEES(program, "> ");
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 130);
}

TEST_F(Chat, LinesAreEdited) {
  TerminalProgram program(chat());
  ASSERT_SEES(program, "> ");
  // Left, backspace, Home, End, Ctrl-W, a two-byte character and an erased three-byte one.
  program.type("helxlo\x1b[D\x1b[D\x7f\x1b[Ha \x1b[F wrold\x17w\xc3\xb6rld\xe6\x9d\xb1\x7f\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  ASSERT_SEES(program, "> ");
  // Up recalls; Down brings the new line back.
  program.type("new\x1b[A\x1b[B er\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  ASSERT_SEES(program, "> ");
  program.type("\x1b[A\x1b[A!\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  const nlohmann::json messages = saved(program)["messages"];
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0]["content"], "a hello w\xc3\xb6rld");
  EXPECT_EQ(messages[2]["content"], "new er");
  EXPECT_EQ(messages[4]["content"], "a hello w\xc3\xb6rld!");
}

TEST_F(Chat, MessagesHaveManyLines) {
  TerminalProgram program(chat());
  ASSERT_SEES(program, "> ");
  program.type("one\\\rtwo\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  program.type("\"\"\"\r/quit\r\rlast\r\"\"\"\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  program.type("\x1b[200~pasted\rlines\x1b[201~\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  const nlohmann::json messages = saved(program)["messages"];
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0]["content"], "one\ntwo");
  EXPECT_EQ(messages[2]["content"], "/quit\n\nlast");
  EXPECT_EQ(messages[4]["content"], "pasted\nlines");
}

TEST_F(Chat, LongLinesWrap) {
  TerminalProgram program(chat(), 20);
  ASSERT_SEES(program, "> ");
  const std::string text(50, 'x');
  // Back over two screen rows, and a letter in front.
  program.type(text + "\x01y\r");
  ASSERT_SEES(program, "42\r\n");
  EXPECT_EQ(saved(program)["messages"][0]["content"], "y" + text);
  EXPECT_NE(program.seen().find("\033[2A"), std::string::npos);
}

TEST_F(Chat, WorksOnATerminalWithoutEscapes) {
  TerminalProgram program(chat(), 80, "dumb");
  ASSERT_SEES(program, "> ");
  program.type("hello\r");
  ASSERT_SEES(program, "42\r\n");
  EXPECT_EQ(saved(program)["messages"][0]["content"], "hello");
  program.type("\x03");
  ASSERT_SEES(program, "Ctrl-C again leaves");
  ASSERT_SEES(program, "> ");
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130);
  EXPECT_EQ(program.seen().find('\033'), std::string::npos) << program.seen();
}

TEST_F(Chat, ErrorsDoNotEndIt) {
  TerminalProgram program(chat({"-c", "48"}));
  ASSERT_SEES(program, "> ");
  program.type(std::string(60, 'x') + "\r");
  ASSERT_SEES(program, "the context holds 48");
  program.type("y\r");
  ASSERT_SEES(program, "\r\n42\r\n");
  const nlohmann::json messages = saved(program)["messages"];
  ASSERT_EQ(messages.size(), 2u) << "the message without an answer is forgotten";
  EXPECT_EQ(messages[0]["content"], "y");
}

TEST_F(Chat, NeedsATemplate) {
  write_scripted_model(file("m.gguf"), {.chat_template = std::nullopt});
  TerminalProgram program({"run", "-m", file("m.gguf")});
  EXPECT_EQ(program.finish(), 1);
  EXPECT_NE(program.seen().find("no chat template"), std::string::npos) << program.seen();
  TerminalProgram raw({"run", "-m", scripted_model(), "--raw"});
  EXPECT_EQ(raw.finish(), 2);
}

}  // namespace
}  // namespace forebay::cli
