// forebay run with one prompt.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.h"
#include "scripted_model.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

/// `forebay run` on the scripted model.
Finished run(std::vector<std::string> arguments, const Surroundings& surroundings = {}) {
  std::vector<std::string> all = {"run", "-m", scripted_model()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all, surroundings);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Run, TheAnswerIsAllThatIsOnStdout) {
  const Finished answered = run({"-p", "What?", "--temp", "0"});
  EXPECT_EQ(answered.code, 0);
  EXPECT_EQ(answered.out, "42\n");
  // Not a terminal: no escape sequences.
  EXPECT_EQ(answered.err.find('\033'), std::string::npos) << answered;
  const std::vector<std::string> lines = lines_of(answered.err);
  ASSERT_EQ(lines.size(), 2u) << answered;
  EXPECT_EQ(lines[0], "hm");
  for (const char* part : {"scripted: ", " prompt tokens at ", ", 6 tokens at ", " tok/s", " memory"})
    EXPECT_TRUE(contains(lines[1], part)) << part << " in " << lines[1];
}

TEST(Run, ReadsAPromptFromAPipe) {
  const nlohmann::json given = nlohmann::json::parse(run({"-p", "What?", "--json"}).out);
  const Finished piped = run({"--json"}, {.input = "What?\n"});
  EXPECT_EQ(piped.code, 0);
  const nlohmann::json read = nlohmann::json::parse(piped.out);
  EXPECT_EQ(read["prompt_tokens"], given["prompt_tokens"]) << "the pipe's line end is no part of the prompt";
  EXPECT_TRUE(is_error(run({}), 1, {"no prompt"}));
}

TEST(Run, ThinkingCanBeLeftOut) {
  const Finished answered = run({"-p", "What?", "--think", "off", "--temp", "0"});
  EXPECT_EQ(answered.out, "42\n");
  EXPECT_EQ(lines_of(answered.err).size(), 1u) << answered;
  EXPECT_EQ(run({"-p", "What?", "--think", "on", "--temp", "0"}).out, "42\n");
}

TEST(Run, QuietSaysNothing) {
  const Finished answered = run({"-q", "-p", "What?", "--temp", "0"});
  EXPECT_EQ(answered.out, "42\n");
  EXPECT_EQ(answered.err, "");
}

TEST(Run, VerbosePrintsTheConfiguration) {
  const Finished answered = run({"-v", "-p", "What?", "--temp", "0.5", "--seed", "9"});
  for (const char* part : {"temp = 0.5", "top-p = 0.95", "seed = 9", "context = 8192", "model = "})
    EXPECT_TRUE(contains(answered.err, part)) << part << " in " << answered;
}

TEST(Run, RawContinuesByteForByte) {
  const Finished continued = run({"--raw", "-p", "say 4", "-n", "1", "--temp", "0"});
  EXPECT_EQ(continued.code, 0);
  EXPECT_EQ(continued.out, "2");
  // Tags and reasoning stay where they are.
  EXPECT_EQ(run({"--raw", "-p", "<think>", "-n", "4", "--temp", "0"}).out, "hm</think>4");
  // And the line end of a pipe is part of the prompt.
  const nlohmann::json read =
      nlohmann::json::parse(run({"--raw", "--json", "-n", "1"}, {.input = "AB\n"}).out);
  EXPECT_EQ(read["prompt_tokens"], 3);
}

TEST(Run, JsonHoldsEverything) {
  const Finished answered = run({"-p", "What?", "--temp", "0", "--json", "--logprobs", "2"});
  const nlohmann::json json = nlohmann::json::parse(answered.out);
  EXPECT_EQ(json["text"], "42");
  EXPECT_EQ(json["reasoning"], "hm");
  EXPECT_EQ(json["finish_reason"], "stop");
  EXPECT_EQ(json["tokens"], 6);
  EXPECT_EQ(json["ids"], (std::vector<int>{'h', 'm', kThinkEnd, '4', '2'}));
  EXPECT_EQ(json["config"]["temp"], 0);
  EXPECT_EQ(json["config"]["prompt"], "What?");
  ASSERT_EQ(json["logprobs"].size(), 5u);
  const nlohmann::json& last = json["logprobs"][4];
  EXPECT_EQ(last["text"], "2");
  EXPECT_EQ(last["top"].size(), 2u);
  EXPECT_EQ(last["top"][0]["id"], '2');
  EXPECT_NEAR(last["logprob"].get<double>(), last["top"][0]["logprob"].get<double>(), 1e-6);
  EXPECT_LE(last["logprob"].get<double>(), 0.0);
}

TEST(Run, TheSeedThatIsPrintedGivesTheSameText) {
  const std::vector<std::string> arguments = {"--raw", "-p", "A", "-n", "60", "--temp", "1", "--json"};
  const nlohmann::json first = nlohmann::json::parse(run(arguments).out);
  const nlohmann::json other = nlohmann::json::parse(run(arguments).out);
  EXPECT_NE(first["config"]["seed"], other["config"]["seed"]);
  EXPECT_NE(first["text"], other["text"]);
  std::vector<std::string> again = arguments;
  again.insert(again.end(), {"--seed", first["config"]["seed"].dump()});
  EXPECT_EQ(nlohmann::json::parse(run(again).out)["text"], first["text"]);
  const Finished plain = run({"--raw", "-p", "A", "-n", "5", "--temp", "1", "--seed", "77"});
  EXPECT_TRUE(contains(plain.err, "seed 77")) << plain;
}

TEST(Run, SaysWhyAnAnswerEnded) {
  EXPECT_TRUE(contains(run({"-p", "x", "-n", "3"}).err, "stopped at the limit of -n"));
  const Finished full = run({"--raw", "-p", "A", "-c", "16"});
  EXPECT_EQ(full.code, 0);
  EXPECT_TRUE(contains(full.err, "the context is full")) << full;
}

TEST(Run, WhatDoesNotFitIsRefused) {
  EXPECT_TRUE(is_error(run({"-p", "a prompt of many tokens", "-c", "8"}), 1, {"prompt", "8"}));
  EXPECT_TRUE(is_error(run({"-p", "x", "--memory-limit", "64K"}), 1, {"65536"}));
  EXPECT_TRUE(is_error(run({"-p", "x", "--logit-bias", "9999=1"}), 1, {"9999"}));
}

TEST(Run, InterruptedEndsWith130AndWhatIsThere) {
  TerminalProgram program(
      {"run", "-m", scripted_model(), "-p", "x", "-c", "1000000", "--logit-bias", "258=-inf"});
  ASSERT_TRUE(program.sees("42424242")) << program.seen();
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130);
  EXPECT_TRUE(contains(program.seen(), "interrupted")) << program.seen().substr(program.seen().size() - 300);
}

TEST(Run, ReasoningIsDimmedOnATerminal) {
  TerminalProgram program({"run", "-m", scripted_model(), "-p", "x", "--temp", "0"});
  EXPECT_EQ(program.finish(), 0);
  EXPECT_TRUE(contains(program.seen(), "\033[2mh\033[0m")) << program.seen();
  EXPECT_TRUE(contains(program.seen(), "\r\n42\r\n")) << program.seen();
  TerminalProgram plain({"run", "-m", scripted_model(), "-p", "x", "--temp", "0"}, 80, "dumb");
  EXPECT_EQ(plain.finish(), 0);
  EXPECT_EQ(plain.seen().find('\033'), std::string::npos) << plain.seen();
}

}  // namespace
}  // namespace forebay::cli
