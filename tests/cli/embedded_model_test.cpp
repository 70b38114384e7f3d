// The program with the model that comes with it.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/storage.h"
#include "program.h"
#include "safetensors/safetensors.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

const Path kModel = Path(FOREBAY_SOURCE_DIR) / "models/pebble.gguf";

class EmbeddedModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModel)) GTEST_SKIP() << kModel << " is not there";
  }
};

TEST_F(EmbeddedModel, AnswersWithoutBeingNamed) {
  const Finished answered = run_program({"run", "-p", "What is 37 + 58?", "--temp", "0", "-n", "80"});
  EXPECT_EQ(answered.code, 0) << answered;
  EXPECT_EQ(answered.out, "95\n") << answered;
  EXPECT_EQ(
      run_program({"run", "-p", "What is 37 + 58?", "--temp", "0", "-n", "80", "-m", kModel.string()}).out,
      answered.out);
}

TEST_F(EmbeddedModel, SamplesAsItsFileSays) {
  const nlohmann::json json =
      nlohmann::json::parse(run_program({"run", "-p", "hi", "-n", "1", "--json"}).out);
  EXPECT_FLOAT_EQ(json["config"]["temp"], 0.7f);
  EXPECT_FLOAT_EQ(json["config"]["top-p"], 0.95f);
  EXPECT_EQ(json["config"]["top-k"], 20);
}

TEST_F(EmbeddedModel, ChatsWithHistory) {
  TerminalProgram program({"run", "--temp", "0"});
  ASSERT_TRUE(program.sees("> ")) << program.seen();
  program.type("What is 37 + 58?\r");
  ASSERT_TRUE(program.sees("\r\n95\r\n")) << program.seen();
  ASSERT_TRUE(program.sees("> ")) << program.seen();
  program.type("What is 12 * 3?\r");
  ASSERT_TRUE(program.sees("\r\n36\r\n")) << program.seen();
  ASSERT_TRUE(program.sees("reused)") && program.sees("> ")) << program.seen();
  program.type("\x04");
  EXPECT_EQ(program.finish(), 0);
}

TEST_F(EmbeddedModel, IsDescribed) {
  const Finished inspected = run_program({"inspect", "--json"});
  EXPECT_EQ(inspected.code, 0) << inspected;
  const nlohmann::json json = nlohmann::json::parse(inspected.out);
  EXPECT_EQ(json["architecture"], "qwen4exp");
  EXPECT_LE(json["file_bytes"], 32'000'000);
  EXPECT_EQ(json["experts"]["used"], 6);
  EXPECT_GT(json["parameters"]["draft head"], 0);
}

TEST_F(EmbeddedModel, TokenizesBothWays) {
  const std::string text = "Hello <think> \xe6\x9d\xb1\xe4\xba\xac 37 + 58\n";
  const Finished ids = run_program({"tokenize", "--json"}, {.input = text});
  EXPECT_EQ(ids.code, 0) << ids;
  EXPECT_EQ(run_program({"tokenize", "--decode", "-"}, {.input = ids.out}).out, text);
}

TEST_F(EmbeddedModel, IsFoundByAnInstalledProgram) {
  const TemporaryDirectory prefix;
  const Finished installed = run_program({"--install", FOREBAY_BUILD_DIR, "--prefix", prefix.path().string()},
                                         {.program = FOREBAY_CMAKE});
  ASSERT_EQ(installed.code, 0) << installed;
  for (const char* file :
       {"share/forebay/pebble.gguf", "share/doc/forebay/README.md", "share/doc/forebay/LICENSE",
        "share/doc/forebay/docs/cli.md", "share/doc/forebay/models/pebble.md"})
    EXPECT_TRUE(std::filesystem::exists(prefix / file)) << file;
  const std::string program = (prefix / "bin/forebay").string();
  const Finished answered =
      run_program({"run", "-v", "-p", "What is 37 + 58?", "--temp", "0"}, {.program = program});
  EXPECT_EQ(answered.out, "95\n") << answered;
  EXPECT_NE(answered.err.find((prefix / "share/forebay/pebble.gguf").string()), std::string::npos)
      << answered;
}

std::vector<float> read_tensor(const Path& file, const char* name) {
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const Result<SafetensorsFile> read = SafetensorsFile::open(*storage, file);
  if (!read || read->find(name) == nullptr) return {};
  std::vector<float> values(read->find(name)->n_elements());
  EXPECT_TRUE(read->read_f32(*read->find(name), 0, values).has_value());
  return values;
}

TEST_F(EmbeddedModel, DraftLogitsHaveOneRowLess) {
  const TemporaryDirectory directory;
  const Path out = directory / "l.safetensors";
  std::string ids = "1";
  for (int id = 2; id <= 150; ++id) ids += "," + std::to_string(id);
  const auto logits = [&](std::vector<std::string> more, const char* name) {
    more.insert(more.begin(), {"logits", "--ids", ids, "-o", out.string()});
    const Finished finished = run_program(more);
    EXPECT_EQ(finished.code, 0) << finished;
    return read_tensor(out, name);
  };
  const std::vector<float> trunk = logits({}, "logits");
  ASSERT_EQ(trunk.size() % 150, 0u);
  EXPECT_TRUE(logits({}, "mtp_logits").empty());
  const std::vector<float> draft = logits({"--mtp"}, "mtp_logits");
  EXPECT_EQ(draft.size(), trunk.size() / 150 * 149);
  // The trunk's are not changed by it, and the head's not by the chunks.
  EXPECT_EQ(logits({"--mtp"}, "logits"), trunk);
  EXPECT_EQ(logits({"--mtp", "--chunk", "64"}, "mtp_logits"), draft);
}

const Path kCheckpoint = Path(FOREBAY_SOURCE_DIR) / "../shared/models/pebble";

TEST_F(EmbeddedModel, WritesJsonOfASchema) {
  const std::vector<std::string> ask = {"run", "-q", "-p", "What is 37 + 58?", "--temp", "1.5", "--seed",
                                        "3",   "-n", "120"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = ask;
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  };
  const std::string schema =
      R"({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]})";
  const Finished inline_schema = with({"--json-schema", schema});
  EXPECT_TRUE(nlohmann::json::parse(inline_schema.out, nullptr, false)["sum"].is_number_integer())
      << inline_schema;
  const TemporaryDirectory directory;
  std::ofstream(directory / "schema.json") << schema;
  EXPECT_EQ(with({"--json-schema", (directory / "schema.json").string()}).out, inline_schema.out);
  EXPECT_TRUE(nlohmann::json::parse(with({"--json-object"}).out, nullptr, false).is_object());
  EXPECT_TRUE(is_error(with({"--json-schema", R"({"not": {}})"}), 1, {"'not'"}));
  EXPECT_TRUE(is_error(with({"--json-schema", "none.json"}), 1, {"none.json"}));
  EXPECT_TRUE(is_error(with({"--json-schema", "{}", "--json-object"}), 2, {"exclude"}));
}

TEST(Conversion, TheDraftHeadGoesWhereItIsWanted) {
  if (!std::filesystem::exists(kCheckpoint)) GTEST_SKIP() << kCheckpoint << " is not there";
  const TemporaryDirectory directory;
  const auto file = [&](const char* name) { return (directory / name).string(); };
  const auto convert = [&](const char* mode, const char* name) {
    return run_program({"convert", kCheckpoint.string(), "-o", file(name), "--mtp", mode, "-q"}).code;
  };
  const auto n_files = [&] {
    return std::distance(std::filesystem::directory_iterator(directory.path()), {});
  };
  EXPECT_EQ(convert("merged", "a.gguf"), 0);
  EXPECT_EQ(convert("none", "b.gguf"), 0);
  EXPECT_EQ(n_files(), 2);
  EXPECT_EQ(convert("separate", "c.gguf"), 0);
  EXPECT_EQ(n_files(), 4);
  EXPECT_LT(std::filesystem::file_size(file("b.gguf")), std::filesystem::file_size(file("a.gguf")));

  const auto drafts = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"logits", "--ids", "1,2,3,4", "--mtp", "-o", file("l")});
    const Finished finished = run_program(more);
    EXPECT_EQ(finished.code, 0) << finished;
    return read_tensor(file("l"), "mtp_logits");
  };
  const std::vector<float> merged = drafts({"-m", file("a.gguf")});
  EXPECT_FALSE(merged.empty());
  EXPECT_EQ(drafts({"-m", file("c.gguf"), "--mtp-model", file("mtp-c.gguf")}), merged);
}

TEST(Conversion, InterruptedLeavesNothingBehind) {
  if (!std::filesystem::exists(kCheckpoint)) GTEST_SKIP() << kCheckpoint << " is not there";
  const TemporaryDirectory directory;
  const std::string out = (directory / "m.gguf").string();
  TerminalProgram program({"convert", kCheckpoint.string(), "-o", out, "--type", "q4_k", "-t", "1"});
  ASSERT_TRUE(program.sees(" % ")) << program.seen();
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130) << program.seen();
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace forebay::cli
