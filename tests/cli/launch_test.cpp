// Processes that are started together, fail together, and are never left behind.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "program.h"

namespace forebay::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Finished launch(std::vector<std::string> flags, const std::string& script) {
  std::vector<std::string> arguments = {"launch"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  for (const std::string& word : {std::string("--"), std::string("sh"), std::string("-c"), script})
    arguments.push_back(word);
  return run_program(arguments);
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// Whether no process has this number before long.
bool is_gone(pid_t pid) {
  for (const Clock::time_point start = Clock::now(); seconds_since(start) < 5;) {
    if (::kill(pid, 0) != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(Launch, TellsEachProcessWhoItIs) {
  const Finished finished = launch({"-n", "3", "--port", "4321"},
                                   "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE "
                                   "$MASTER_ADDR:$MASTER_PORT $TORCHELASTIC_USE_AGENT_STORE");
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(sorted_lines(finished.out),
            (std::vector<std::string>{"0/3 0/3 127.0.0.1:4321 False", "1/3 1/3 127.0.0.1:4321 False",
                                      "2/3 2/3 127.0.0.1:4321 False"}));
  EXPECT_EQ(finished.err, "");
}

TEST(Launch, SeveralMachines) {
  const Finished finished =
      launch({"-n", "2", "--world", "4", "--first-rank", "2", "--host", "box", "--port", "99"},
             "echo $RANK/$WORLD_SIZE $LOCAL_RANK $MASTER_ADDR:$MASTER_PORT");
  EXPECT_EQ(sorted_lines(finished.out), (std::vector<std::string>{"2/4 0 box:99", "3/4 1 box:99"}));
  EXPECT_TRUE(is_error(launch({"-n", "2", "--world", "4"}, "true"), 2, {"--port"}));
  EXPECT_TRUE(is_error(launch({"-n", "2", "--world", "4", "--first-rank", "3", "--port", "9"}, "true"), 2,
                       {"ranks 3 to 4 of 4"}));
}

TEST(Launch, PrefixesLines) {
  const Finished finished = launch({"-n", "2", "--prefix"}, "echo one $RANK; printf 'no end' >&2");
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(sorted_lines(finished.out), (std::vector<std::string>{"[0] one 0", "[1] one 1"}));
  EXPECT_EQ(sorted_lines(finished.err), (std::vector<std::string>{"[0] no end", "[1] no end"}));
}

TEST(Launch, TheCommandKeepsItsOwnFlags) {
  const Finished finished = run_program({"launch", "-n", "1", "--", "echo", "--prefix", "-n", "--", "-x"});
  EXPECT_EQ(finished.out, "--prefix -n -- -x\n") << finished;
  const Finished itself = run_program({"launch", "--", "forebay", "--version"});
  EXPECT_EQ(itself.code, 0) << itself;
  EXPECT_TRUE(itself.out.starts_with("forebay ")) << itself;
}

TEST(Launch, TheFirstFailureIsNamedAndTheRestIsStopped) {
  const Clock::time_point start = Clock::now();
  EXPECT_TRUE(is_error(launch({"-n", "3"}, "[ $RANK = 1 ] && exit 7; sleep 50"), 1,
                       {"rank 1 of 3 failed first", "exit code 7"}));
  EXPECT_TRUE(is_error(launch({"-n", "3"}, "[ $RANK = 2 ] && kill -9 $$; sleep 50"), 1,
                       {"rank 2 of 3 failed first", "signal 9"}));
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Launch, WhoDoesNotListenIsKilled) {
  const Clock::time_point start = Clock::now();
  EXPECT_TRUE(is_error(launch({"-n", "2", "--grace", "1"},
                              "[ $RANK = 0 ] && exit 1; trap '' TERM; while :; do sleep 0.1; done"),
                       1, {"rank 0 of 2"}));
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Launch, AProgramThatIsNotThere) {
  EXPECT_TRUE(is_error(run_program({"launch", "-n", "2", "--", "no-such-program"}), 1, {"no-such-program"}));
  EXPECT_TRUE(is_error(run_program({"launch", "-n", "2"}), 2, {"no command"}));
}

TEST(Launch, LeavesNoGrandchild) {
  const Finished finished =
      launch({"-n", "2"}, "sleep 50 >&- 2>&- & echo $!; [ $RANK = 1 ] && sleep 0.1 && exit 3; exit 0");
  EXPECT_EQ(finished.code, 1) << finished;
  ASSERT_EQ(lines_of(finished.out).size(), 2u);
  for (const std::string& pid : lines_of(finished.out)) EXPECT_TRUE(is_gone(std::stoi(pid))) << pid;
}

/// The number after `word` in what a program wrote.
pid_t pid_after(const TerminalProgram& program, const std::string& word) {
  return std::stoi(program.seen().substr(program.seen().find(word) + word.size()));
}

TEST(Launch, CtrlCGoesToAll) {
  TerminalProgram program(
      {"launch", "-n", "2", "--", "sh", "-c",
       "trap 'echo stopped $RANK.; exit 0' INT; echo up $RANK.; while :; do sleep 0.05; done"});
  ASSERT_TRUE(program.sees("up")) << program.seen();
  ASSERT_TRUE(program.sees("up")) << program.seen();
  program.signal(SIGINT);
  EXPECT_EQ(program.finish(), 130) << program.seen();
  EXPECT_NE(program.seen().find("stopped 0."), std::string::npos) << program.seen();
  EXPECT_NE(program.seen().find("stopped 1."), std::string::npos) << program.seen();
}

TEST(Launch, KilledItTakesItsProcessesAlong) {
  TerminalProgram program({"launch", "-n", "1", "--", "sh", "-c", "echo pid $$.; exec sleep 50"});
  ASSERT_TRUE(program.sees(".")) << program.seen();
  const pid_t child = pid_after(program, "pid ");
  program.signal(SIGKILL);
  EXPECT_TRUE(is_gone(child));
  program.finish();
}

}  // namespace
}  // namespace forebay::cli
