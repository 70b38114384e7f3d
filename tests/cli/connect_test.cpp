// forebay connect: what is printed, what is written, and that nothing else in a file changes.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/client_config.h"
#include "program.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(Connect, PrintsEachClientsSettings) {
  const Finished claude = run_program({"connect", "claude", "--url", "http://box:9/v1/", "--model", "m"});
  EXPECT_EQ(claude.code, 0) << claude;
  const Json env = Json::parse(claude.out)["env"];
  EXPECT_EQ(env["ANTHROPIC_BASE_URL"], "http://box:9");
  EXPECT_EQ(env["ANTHROPIC_MODEL"], "m");
  EXPECT_NE(claude.err.find(".claude/settings.local.json"), std::string::npos);

  const Json provider =
      Json::parse(run_program({"connect", "opencode", "--api-key", "k"}).out)["provider"]["forebay"];
  EXPECT_EQ(provider["options"]["baseURL"], "http://127.0.0.1:8080/v1");
  EXPECT_EQ(provider["options"]["apiKey"], "k");
  EXPECT_TRUE(provider["models"].contains("forebay"));

  EXPECT_EQ(run_program({"connect", "codex"}).out,
            "[model_providers.forebay]\nname = \"Forebay\"\nbase_url = "
            "\"http://127.0.0.1:8080/v1\"\nwire_api = \"responses\"\n\n"
            "[profiles.forebay]\nmodel = \"forebay\"\nmodel_provider = \"forebay\"\n");
  EXPECT_EQ(run_program({"connect", "openai", "--api-key", "k"}).out,
            "OPENAI_BASE_URL=http://127.0.0.1:8080/v1\nOPENAI_API_KEY=k\n");
}

TEST(Connect, SaysWhatIsWrong) {
  EXPECT_TRUE(is_error(run_program({"connect"}), 2, {"CLIENT", "claude"}));
  EXPECT_TRUE(is_error(run_program({"connect", "emacs"}), 2, {"'emacs'", "opencode"}));
  EXPECT_TRUE(is_error(run_program({"connect", "codex", "--url", "box"}), 2, {"--url", "'box'"}));
  EXPECT_TRUE(is_error(run_program({"connect", "codex", "--api-key", "a\"b"}), 2, {"quotes"}));
}

TEST(Connect, WritesBesideWhatIsThere) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "deep" / "settings.json";
  const std::vector<std::string> command = {"connect", "claude", "--write", "--file", file.string()};
  EXPECT_EQ(run_program(command).code, 0);
  EXPECT_EQ(Json::parse(read(file))["env"]["ANTHROPIC_MODEL"], "forebay");
  EXPECT_NE(run_program(command).out.find("nothing to change"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".backup"));

  const std::string theirs =
      R"({"permissions": {"allow": ["Bash"]}, "env": {"PATH": "/bin", "ANTHROPIC_MODEL": "other"}, "z": 1.50})";
  write(file, theirs);
  EXPECT_EQ(run_program(command).code, 0);
  Json merged = Json::parse(read(file));
  EXPECT_EQ(merged["env"]["PATH"], "/bin");
  EXPECT_EQ(merged["env"]["ANTHROPIC_MODEL"], "forebay");
  EXPECT_EQ(merged["permissions"], Json::parse(theirs)["permissions"]);
  EXPECT_EQ(merged["z"], 1.5);
  EXPECT_EQ(read(file.string() + ".backup"), theirs);

  write(file, theirs);
  EXPECT_EQ(run_program(command).code, 0);
  EXPECT_EQ(read(file.string() + ".backup2"), theirs);
}

TEST(Connect, LeavesWhatItCannotRead) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "c.json";
  for (const std::string text :
       {"{ // mine\n \"a\": 1}", "[1]", R"({"env": "x"})", R"({"env": {"ANTHROPIC_MODEL": {}}})"}) {
    write(file, text);
    EXPECT_TRUE(
        is_error(run_program({"connect", "claude", "--write", "--file", file.string()}), 1, {"c.json"}))
        << text;
    EXPECT_EQ(read(file), text);
  }
}

TEST(Connect, TomlKeepsEveryOtherLine) {
  const std::string tables =
      "[model_providers.forebay]\nbase_url = \"u\"\n\n[profiles.forebay]\nmodel = \"m\"\n";
  const auto with = [&](const std::string& text) {
    const Result<std::string> made = with_toml_tables(text, tables);
    return made ? *made : "error: " + made.error().message;
  };
  EXPECT_EQ(with(""), tables);
  const std::string theirs =
      "# mine\nmodel = \"gpt\"  # kept\n\n[mcp_servers.x]\ncommand = 'y'\nargs = [\n  \"a\",\n]\n";
  EXPECT_EQ(with(theirs), theirs + "\n" + tables);
  EXPECT_EQ(with(with(theirs)), with(theirs));
  EXPECT_EQ(with("[profiles.forebay]\nmodel = \"old\"\nx = 1\n\n# about b\n[b]\nc = 1\n"),
            "[profiles.forebay]\nmodel = \"m\"\n\n# about b\n[b]\nc = "
            "1\n\n[model_providers.forebay]\nbase_url = \"u\"\n");
  const std::string in_text = "a = \"\"\"\n[profiles.forebay]\n\"\"\"\n";
  EXPECT_EQ(with(in_text), in_text + "\n" + tables);
  const std::string parents = "[profiles]\n\n[profiles.other]\nmodel = \"z\"\n[[list]]\na = 1\n";
  EXPECT_EQ(with(parents), parents + "\n" + tables);
  EXPECT_NE(with("profiles = { a = 1 }\n").find("error: line 1: 'profiles'"), std::string::npos);
  EXPECT_NE(with("[profiles]\nforebay = { model = 1 }\n").find("error: line 2: 'forebay'"),
            std::string::npos);
  EXPECT_NE(with("model_providers.forebay.name = 1\n").find("error: line 1"), std::string::npos);
}

TEST(Connect, EnvironmentFiles) {
  const std::vector<std::pair<std::string, std::string>> values = {{"OPENAI_BASE_URL", "u"},
                                                                   {"OPENAI_API_KEY", "k"}};
  EXPECT_EQ(with_env_lines("A=1\nexport OPENAI_API_KEY=old\nOPENAI_API_KEY_2=x\n", values),
            "A=1\nexport OPENAI_API_KEY=k\nOPENAI_API_KEY_2=x\nOPENAI_BASE_URL=u\n");
  EXPECT_EQ(with_env_lines("A=1", values), "A=1\nOPENAI_BASE_URL=u\nOPENAI_API_KEY=k\n");
}

TEST(Connect, CodexFindsTheHomeDirectory) {
  const TemporaryDirectory home;
  EXPECT_EQ(
      run_program({"connect", "codex", "--write"}, {.environment = {"HOME=" + home.path().string()}}).code,
      0);
  EXPECT_TRUE(read(home.path() / ".codex" / "config.toml").starts_with("[model_providers.forebay]"));
}

}  // namespace
}  // namespace forebay::cli
