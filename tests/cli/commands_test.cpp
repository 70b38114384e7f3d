// What every subcommand has in common: help, misuse, exit codes, one line per error.
#include <gtest/gtest.h>

#include "program.h"
#include "scripted_model.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

// One a line.
// clang-format off
const std::vector<std::string> kCommands = {
    "run",
    "serve",
    "connect",
    "inspect",
    "plan",
    "doctor",
    "convert",
    "synth",
    "kld",
    "scr-test",
    "route-curve",
    "replay",
    "bench",
    "pack",
    "session",
    "launch",
    "tokenize",
    "template",
    "logits",
    "lab",
};
// clang-format on

TEST(Commands, HelpOpensWithAnExample) {
  const Finished overview = run_program({"--help"});
  EXPECT_EQ(overview.code, 0) << overview;
  EXPECT_TRUE(overview.out.starts_with("forebay run ")) << overview;
  for (const std::string& command : kCommands) {
    EXPECT_NE(overview.out.find("\n  " + command + " "), std::string::npos) << command << " in " << overview;
    const Finished help = run_program({command, "--help"});
    EXPECT_EQ(help.code, 0) << help;
    EXPECT_TRUE(help.out.starts_with("forebay " + command)) << help;
    EXPECT_NE(help.out.find("usage: forebay " + command), std::string::npos) << help;
    EXPECT_EQ(help.err, "");
  }
  EXPECT_EQ(lines_of(overview.out).size() > 12, true) << "commands missing from the list above?";
}

TEST(Commands, TrainIsAProgramBeside) {
  const Finished help = run_program({"train", "--help"});
  EXPECT_EQ(help.code, 0) << help;
  EXPECT_NE(help.out.find("usage: forebay train"), std::string::npos) << help;
  EXPECT_TRUE(is_error(run_program({"train"}), 2, {"train", "--help"}));
  // Built or not, something that does not exist is one line and no success.
  const Finished unknown = run_program({"train", "sideways"});
  EXPECT_NE(unknown.code, 0) << unknown;
  EXPECT_EQ(lines_of(unknown.err).size(), 1u) << unknown;
}

TEST(Commands, VersionIsANumber) {
  const Finished version = run_program({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.starts_with("forebay 0.")) << version;
}

TEST(Commands, MisuseIsExitCode2AndOneLine) {
  EXPECT_TRUE(is_error(run_program({}), 2, {"no command", "--help"}));
  EXPECT_TRUE(is_error(run_program({"walk"}), 2, {"'walk'", "--help"}));
  for (const std::string& command : kCommands) {
    EXPECT_TRUE(
        is_error(run_program({command, "--no-such-flag"}), 2, {"--no-such-flag", "forebay " + command}));
    EXPECT_TRUE(is_error(run_program({command, "-v", "-q"}), 2, {"-v and -q"}));
  }
  EXPECT_TRUE(is_error(run_program({"run", "-n", "many", "-p", "x"}), 2, {"--tokens", "'many'"}));
  EXPECT_TRUE(is_error(run_program({"run", "-p", "x", "--raw", "--system", "y"}), 2, {"--system", "--raw"}));
  EXPECT_TRUE(is_error(run_program({"run", "-p", "x", "--raw", "--think", "on"}), 2, {"--think", "--raw"}));
  EXPECT_TRUE(is_error(run_program({"run", "-p", "x", "--logprobs", "2"}), 2, {"--logprobs", "--json"}));
  EXPECT_TRUE(is_error(run_program({"run", "-p", "x", "--logit-bias", "3"}), 2, {"--logit-bias", "'3'"}));
  EXPECT_TRUE(is_error(run_program({"logits", "-o", "x"}), 2, {"--ids"}));
  EXPECT_TRUE(is_error(run_program({"logits", "--ids", "1"}), 2, {"-o"}));
  EXPECT_TRUE(is_error(run_program({"logits", "--ids", "1", "-o", "x", "--mtp-model", "y"}), 2, {"--mtp"}));
  EXPECT_TRUE(is_error(run_program({"serve", "--host", "0.0.0.0"}), 2, {"--host 0.0.0.0", "--api-key"}));
  EXPECT_TRUE(is_error(run_program({"template"}), 2, {"--json"}));
  EXPECT_TRUE(
      is_error(run_program({"template", "--json", "-", "-m", "a", "--template", "b"}), 2, {"exclude"}));
  EXPECT_TRUE(is_error(run_program({"tokenize", "x", "--decode", "1"}), 2, {"exclude"}));
  EXPECT_TRUE(is_error(run_program({"convert"}), 2, {"DIR"}));
  EXPECT_TRUE(is_error(run_program({"convert", "x"}), 2, {"-o"}));
  EXPECT_TRUE(is_error(run_program({"convert", "x", "-o", "y", "--type", "q9"}), 2, {"--type", "q9"}));
  EXPECT_TRUE(is_error(run_program({"convert", "x", "-o", "y", "--mtp", "both"}), 2, {"--mtp", "merged"}));
  EXPECT_TRUE(is_error(run_program({"scr-test"}), 2, {"--conversation", "-C"}));
  EXPECT_TRUE(is_error(run_program({"scr-test", "--conversation", "x", "-C", "y"}), 2, {"exclude"}));
  EXPECT_TRUE(is_error(run_program({"scr-test", "-C", "y", "--edit", "1"}), 2, {"--edit"}));
  EXPECT_TRUE(
      is_error(run_program({"scr-test", "--conversation", "x", "-J", "8,x"}), 2, {"--junctions", "'x'"}));
  EXPECT_TRUE(is_error(run_program({"kld", "--text", "x"}), 2, {"--ref"}));
  EXPECT_TRUE(is_error(run_program({"kld", "--ref", "x"}), 2, {"--text"}));
  EXPECT_TRUE(is_error(run_program({"kld", "--ref", "x", "--text", "y", "--ref-opt", "--raw"}), 2,
                       {"--ref-opt", "--raw"}));
}

TEST(Commands, MissingFilesAreNamed) {
  const std::string none = "no/such/file";
  EXPECT_TRUE(is_error(run_program({"run", "-m", none, "-p", "x"}), 1, {none}));
  EXPECT_TRUE(is_error(run_program({"inspect", none}), 1, {none}));
  EXPECT_TRUE(is_error(run_program({"tokenize", "-m", none, "x"}), 1, {none}));
  EXPECT_TRUE(is_error(run_program({"template", "-m", none, "--json", "-"}, {.input = "{}"}), 1, {none}));
  EXPECT_TRUE(
      is_error(run_program({"template", "--template", none, "--json", "-"}, {.input = "{}"}), 1, {none}));
  EXPECT_TRUE(is_error(run_program({"template", "-m", scripted_model(), "--json", none}), 1, {none}));
  EXPECT_TRUE(is_error(run_program({"logits", "-m", none, "--ids", "1", "-o", "x"}), 1, {none}));
  EXPECT_TRUE(is_error(run_program({"logits", "-m", scripted_model(), "--ids", none, "-o", "x"}), 1, {none}));
  EXPECT_TRUE(is_error(run_program({"convert", none, "-o", "x"}), 1, {none}));
  EXPECT_TRUE(
      is_error(run_program({"kld", "-m", none, "--ref", none, "--text", "-"}, {.input = "x"}), 1, {none}));
  EXPECT_TRUE(is_error(
      run_program({"kld", "-m", scripted_model(), "--ref", scripted_model(), "--text", none}), 1, {none}));
}

TEST(Commands, OutputThatCannotBeWrittenIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", scripted_model()},
      {"inspect", scripted_model(), "--tensors", "--full"},
      {"run", "-q", "-m", scripted_model(), "-p", "x"}};
  for (const std::vector<std::string>& arguments : commands)
    EXPECT_TRUE(is_error(run_program(arguments, {.output_file = "/dev/full"}), 1, {"standard output"}));
}

TEST(Commands, TheEnvironmentSetsTheLogLevel) {
  const std::vector<std::string> arguments = {"run", "-m", scripted_model(), "-p", "x"};
  const Finished verbose = run_program(arguments, {.environment = {"FOREBAY_LOG=debug"}});
  EXPECT_NE(verbose.err.find("top-k = 20"), std::string::npos) << verbose;
  const Finished usual = run_program(arguments, {.environment = {"FOREBAY_LOG=info"}});
  EXPECT_EQ(usual.err.find("top-k"), std::string::npos) << usual;
  EXPECT_TRUE(
      is_error(run_program(arguments, {.environment = {"FOREBAY_LOG=loud"}}), 2, {"FOREBAY_LOG", "'loud'"}));
}

}  // namespace
}  // namespace forebay::cli
