#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/model_summary.h"
#include "core/storage.h"
#include "program.h"
#include "scripted_model.h"
#include "support/temporary_directory.h"
#include "support/test_models.h"

namespace forebay::cli {
namespace {

nlohmann::json inspect(const std::string& file, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"inspect", file, "--json"});
  const Finished finished = run_program(more);
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(finished.err, "");
  return nlohmann::json::parse(finished.out);
}

// The scripted model: width 264, vocabulary 261, inner width 32, 4 experts of width 8, 2 of them used.
constexpr int kExpert = 3 * 264 * 8;
constexpr int kTrunkWithoutTables = 264 + 264 * 261 + 2 * 264 + 3 * 264 * 32 + 2 * 16 + 32 * 264 + 264 * 4;

TEST(Inspect, CountsParametersExpertsAndState) {
  const nlohmann::json json = inspect(scripted_model());
  EXPECT_EQ(json["architecture"], "qwen3moe");
  EXPECT_EQ(json["name"], "scripted");
  EXPECT_EQ(json["parameters"]["experts"], 4 * kExpert);
  EXPECT_EQ(json["parameters"]["tables"], 264 * 261);
  EXPECT_EQ(json["parameters"]["trunk"], kTrunkWithoutTables);
  EXPECT_EQ(json["parameters"]["all"], 4 * kExpert + 264 * 261 + kTrunkWithoutTables);
  EXPECT_EQ(json["parameters"]["active_per_token"], 2 * kExpert + kTrunkWithoutTables);
  EXPECT_EQ(json["experts"]["used"], 2);
  EXPECT_EQ(json["experts"]["bytes_per_token"], 2 * kExpert * 4);
  EXPECT_EQ(json["experts"]["blocks"],
            nlohmann::json::parse(R"([{"block": 0, "experts": 4, "bytes_per_expert": 25344,
                                       "parameters_per_expert": 6336}])"));
  EXPECT_EQ(json["tensors_by_type"]["F32"]["parameters"], json["parameters"]["all"]);
  // Keys and values of 2 heads of 16, f32.
  EXPECT_EQ(json["state"]["trunk"]["bytes_per_cell"], 2 * 2 * 16 * 4);
  EXPECT_EQ(json["state"]["context"], 8192);
  EXPECT_EQ(inspect(scripted_model(), {"-c", "100"})["state"]["trunk"]["bytes"], 100 * 2 * 2 * 16 * 4);
  EXPECT_EQ(json["metadata"]["qwen3moe.expert_count"]["value"], 4);
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"]["type"], "string[261]");
}

TEST(Inspect, LongMetadataIsCutUnlessAskedFor) {
  EXPECT_EQ(inspect(scripted_model())["metadata"]["tokenizer.ggml.tokens"]["value"].size(), 64u);
  EXPECT_EQ(inspect(scripted_model(), {"--full"})["metadata"]["tokenizer.ggml.tokens"]["value"].size(), 261u);
}

TEST(Inspect, ListsTensors) {
  const nlohmann::json tensors = inspect(scripted_model(), {"--tensors"})["tensors"];
  ASSERT_EQ(tensors.size(), 15u);
  EXPECT_EQ(tensors[0]["name"], "token_embd.weight");
  EXPECT_EQ(tensors[0]["dimensions"], (std::vector<int>{264, 261}));
  EXPECT_FALSE(inspect(scripted_model()).contains("tensors"));
}

TEST(Inspect, PrintsTheSameForPeople) {
  const Finished finished = run_program({"inspect", scripted_model(), "--tensors"});
  EXPECT_EQ(finished.code, 0);
  for (const char* part : {"architecture 'qwen3moe'", "qwen3moe.expert_count", "string[261]",
                           "blk.0.ffn_up_exps.weight", "[264, 8, 4]", "Experts, 2 used per token", "25,344",
                           "6,336", "trunk", "tables", "256 bytes per token", "multiplied per token"})
    EXPECT_NE(finished.out.find(part), std::string::npos) << part << " in " << finished;
}

TEST(Inspect, DescribesWhatItCannotRun) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "m.gguf").string();
  write_scripted_model(file, {.architecture = "qwen9", .vocabulary = false});
  const nlohmann::json json = inspect(file);
  EXPECT_EQ(json["architecture"], "qwen9");
  EXPECT_EQ(json["parameters"]["active_per_token"], 2 * kExpert + kTrunkWithoutTables);
  EXPECT_TRUE(json["state"]["trunk"].is_null());
  EXPECT_NE(json["state"]["unknown"].get<std::string>().find("qwen9"), std::string::npos);
  const Finished text = run_program({"inspect", file});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("unknown"), std::string::npos);
}

TEST(Inspect, KeepsTheDraftHeadApart) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "m.gguf").string();
  write_scripted_model(file, {.draft_block = true});
  const nlohmann::json json = inspect(file);
  EXPECT_EQ(json["parameters"]["draft head"], 7);
  EXPECT_EQ(json["parameters"]["trunk"], kTrunkWithoutTables);
  EXPECT_EQ(json["parameters"]["active_per_token"], 2 * kExpert + kTrunkWithoutTables);
}

TEST(Inspect, TiedEmbeddingsAreReadForEveryToken) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "m.gguf").string();
  write_scripted_model(file, {.missing = "output.weight"});
  const nlohmann::json json = inspect(file);
  EXPECT_FALSE(json["parameters"].contains("tables")) << json["parameters"];
  // As large as the head that is missing.
  EXPECT_EQ(json["parameters"]["trunk"], kTrunkWithoutTables);
}

TEST(Inspect, StateOfHybridModelsHasAFixedPart) {
  const nlohmann::json hybrid = inspect(forebay::testing::converted_vectors("qwen4exp").string());
  EXPECT_GT(hybrid["state"]["trunk"]["fixed_bytes"], 0);
  EXPECT_GT(hybrid["state"]["trunk"]["bytes_per_cell"], 0);
  EXPECT_EQ(inspect(scripted_model())["state"]["trunk"]["fixed_bytes"], 0);
}

}  // namespace
}  // namespace forebay::cli
