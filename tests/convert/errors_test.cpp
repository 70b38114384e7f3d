/// Checkpoints that are wrong: one line that names what, seen and wanted.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/result_matchers.h"
#include "test_checkpoint.h"

namespace forebay {
namespace {

Result<ConvertReport> converted(const TestCheckpoint& checkpoint, bool dry_run = true) {
  MemoryStorage storage;
  checkpoint.write(storage);
  ConvertOptions options = convert_options("bf16");
  options.dry_run = dry_run;
  Result<ConvertReport> report = convert_in(storage, options);
  EXPECT_EQ(storage.exists(kOutput), report.has_value() && !dry_run);
  EXPECT_FALSE(storage.exists("out/model.gguf.partial"));
  return report;
}

class MissingTensorTest : public testing::TestWithParam<std::string> {};

TEST_P(MissingTensorTest, EveryOneIsNamed) {
  const TestCheckpoint whole =
      GetParam() == "qwen4exp" ? TestCheckpoint::with_draft_head() : TestCheckpoint::vectors(GetParam());
  for (const auto& [name, tensor] : whole.tensors) {
    if (name.ends_with(".layer_multipliers")) continue;  // can be derived
    TestCheckpoint checkpoint = whole;
    checkpoint.tensors.erase(name);
    EXPECT_TRUE(
        fails_with(converted(checkpoint), Code::kNotFound, "ckpt: tensor " + name + " is missing, wanted "));
  }
}

TEST_P(MissingTensorTest, EveryWrongShapeIsNamed) {
  const TestCheckpoint whole =
      GetParam() == "qwen4exp" ? TestCheckpoint::with_draft_head() : TestCheckpoint::vectors(GetParam());
  for (const auto& [name, tensor] : whole.tensors) {
    if (tensor.type == SafeType::kI64) continue;
    TestCheckpoint checkpoint = whole;
    checkpoint.set(name, {3, 5}, std::vector<float>(15));
    EXPECT_TRUE(
        fails_with(converted(checkpoint), Code::kCorrupt, "tensor " + name, "shape [3, 5], wanted ["));
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, MissingTensorTest, testing::ValuesIn(kVectorFamilies),
                         [](const auto& info) { return info.param; });

TEST(BadCheckpointTest, UnknownTensors) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3");
  checkpoint.set("model.layers.0.self_attn.sinks", {4}, {1, 2, 3, 4});
  EXPECT_TRUE(fails_with(converted(checkpoint), Code::kUnsupported,
                         "ckpt: tensor model.layers.0.self_attn.sinks", "no place in the model"));
  checkpoint = TestCheckpoint::vectors("qwen3");
  checkpoint.config["num_hidden_layers"] = 2;  // the third layer's tensors are left
  checkpoint.config.erase("layer_types");
  EXPECT_TRUE(fails_with(converted(checkpoint), Code::kUnsupported, "model.layers.2."));
  checkpoint = TestCheckpoint::vectors("qwen3");
  checkpoint.set("mtp.fc.weight", {64, 128}, std::vector<float>(64 * 128));
  EXPECT_TRUE(fails_with(converted(checkpoint), Code::kUnsupported, "draft head", "qwen3"));
}

TEST(BadCheckpointTest, SameTensorUnderTwoNames) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3");
  checkpoint.tensors["model.language_model.norm.weight"] = checkpoint.tensors["model.norm.weight"];
  EXPECT_TRUE(fails_with(converted(checkpoint), Code::kCorrupt, "model.norm.weight",
                         "model.language_model.norm.weight", "same place"));
}

TEST(BadCheckpointTest, RopeFrequenciesAreLeftOut) {
  TestCheckpoint checkpoint = TestCheckpoint::llama();
  checkpoint.set("model.layers.0.self_attn.rotary_emb.inv_freq", {8}, std::vector<float>(8, 1));
  const auto report = converted(checkpoint);
  ASSERT_OK(report);
  EXPECT_EQ(report->notes[0], "left out: 1 tensor of rope frequencies, which follow from the config");
}

TEST(BadCheckpointTest, WeightTypes) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3");
  TestTensor& tensor = checkpoint.tensors["model.layers.1.mlp.up_proj.weight"];
  tensor = {SafeType::kI8, tensor.shape, std::vector<std::byte>(96 * 64)};
  EXPECT_TRUE(
      fails_with(converted(checkpoint), Code::kUnsupported, "model.layers.1.mlp.up_proj.weight", "I8"));
  tensor.type = SafeType::kF8E4M3;
  EXPECT_TRUE(
      fails_with(converted(checkpoint), Code::kUnsupported, "model.layers.1.mlp.up_proj.weight", "F8_E4M3"));
}

TEST(BadCheckpointTest, ValuesThatAreNoNumbers) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3");
    std::vector<float> values(96 * 64, 0.5f);
    values[7 * 64 + 3] = bad;
    values[50 * 64 + 1] = bad;
    checkpoint.set("model.layers.1.mlp.up_proj.weight", {96, 64}, values);
    EXPECT_TRUE(fails_with(converted(checkpoint, false), Code::kInvalidArgument,
                           "tensor blk.1.ffn_up.weight, row 7", "value 3"));
  }
}

TEST(BadCheckpointTest, HashConstants) {
  const auto with = [](const std::string& name, std::vector<uint64_t> values) {
    TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen4exp");
    const auto bytes = std::as_bytes(std::span(values));
    checkpoint.tensors["model.layers.1.ple.ple_embedding." + name] = {
        SafeType::kI64, {values.size()}, {bytes.begin(), bytes.end()}};
    return converted(checkpoint);
  };
  EXPECT_TRUE(fails_with(with("layer_multipliers", {1, 3}), Code::kCorrupt, "layer_multipliers", "3 values"));
  EXPECT_TRUE(fails_with(with("ngram_heads_vocab_sizes", {503, 521}), Code::kCorrupt,
                         "ngram_heads_vocab_sizes", "the first 2 primes from 500"));
  EXPECT_TRUE(fails_with(with("ngram_heads_offsets", {0, 504}), Code::kCorrupt, "ngram_heads_offsets"));
}

struct BadConfig {
  std::string family;
  nlohmann::json patch;  // a merge patch: null removes
  Code code;
  std::vector<std::string> parts;
};

TEST(BadConfigTest, EveryMemberIsNamedWithItsValue) {
  const std::vector<BadConfig> table = {
      {"qwen3", {{"model_type", "bert"}}, Code::kUnsupported, {"model_type is 'bert'", "qwen4_exp", "llama"}},
      {"qwen3", {{"model_type", nullptr}}, Code::kUnsupported, {"model_type is ''"}},
      {"qwen3", {{"hidden_size", nullptr}}, Code::kNotFound, {"ckpt/config.json: hidden_size is missing"}},
      {"qwen3", {{"hidden_size", "64"}}, Code::kCorrupt, {"hidden_size is \"64\", wanted an integer from 1"}},
      {"qwen3", {{"hidden_size", -64}}, Code::kCorrupt, {"hidden_size is -64"}},
      {"qwen3", {{"num_hidden_layers", 3.5}}, Code::kCorrupt, {"num_hidden_layers is 3.5"}},
      {"qwen3", {{"num_hidden_layers", 1000000}}, Code::kCorrupt, {"num_hidden_layers is 1000000", "4095"}},
      {"qwen3", {{"num_key_value_heads", 3}}, Code::kCorrupt, {"num_key_value_heads is 3", "divisor of 4"}},
      {"qwen3", {{"hidden_act", "gelu"}}, Code::kUnsupported, {"hidden_act is \"gelu\", wanted silu"}},
      {"qwen3", {{"attention_bias", true}}, Code::kUnsupported, {"attention_bias is true"}},
      {"qwen3", {{"use_sliding_window", true}}, Code::kUnsupported, {"use_sliding_window is true"}},
      {"qwen3", {{"rms_norm_eps", "small"}}, Code::kCorrupt, {"rms_norm_eps is \"small\", wanted a number"}},
      {"qwen3", {{"rope_parameters", {{"rope_theta", 0.5}}}}, Code::kCorrupt, {"rope_theta is 0.5"}},
      {"qwen3",
       {{"rope_parameters", {{"rope_type", "llama3"}, {"factor", 8}}}},
       Code::kUnsupported,
       {"rope_type is \"llama3\""}},
      {"qwen3", {{"rope_parameters", {{"rope_type", "yarn"}}}}, Code::kCorrupt, {"factor is missing"}},
      {"qwen3moe", {{"norm_topk_prob", false}}, Code::kUnsupported, {"norm_topk_prob is false"}},
      {"qwen3moe", {{"decoder_sparse_step", 2}}, Code::kUnsupported, {"decoder_sparse_step is 2"}},
      {"qwen3moe", {{"mlp_only_layers", {0}}}, Code::kUnsupported, {"mlp_only_layers is [0]"}},
      {"qwen3moe", {{"num_experts_per_tok", 17}}, Code::kCorrupt, {"num_experts_per_tok is 17", "16"}},
      {"qwen3moe", {{"num_local_experts", nullptr}}, Code::kNotFound, {"num_experts is missing"}},
      {"qwen35moe", {{"linear_num_value_heads", 5}}, Code::kCorrupt, {"linear_num_value_heads is 5"}},
      {"qwen35moe", {{"layer_types", {"full_attention"}}}, Code::kCorrupt, {"layer_types", "4 entries"}},
      {"qwen35moe",
       {{"layer_types", {"linear_attention", "mamba", "linear_attention", "full_attention"}}},
       Code::kUnsupported,
       {"layer_types[1] is mamba"}},
      {"qwen35moe",
       {{"rope_parameters", {{"mrope_section", {1, 1, 1}}}}},
       Code::kCorrupt,
       {"mrope_section is [1,1,1]", "sum to 4"}},
      {"qwen35moe",
       {{"rope_parameters", {{"partial_rotary_factor", 1.5}}}},
       Code::kCorrupt,
       {"partial_rotary_factor is 1.5"}},
      {"qwen4exp", {{"output_gate_type", "silu"}}, Code::kUnsupported, {"output_gate_type is \"silu\""}},
      {"qwen4exp", {{"indexer_kv_heads", 2}}, Code::kUnsupported, {"indexer_kv_heads is 2"}},
      {"qwen4exp",
       {{"ple_layer_ids", {2, 5}}},
       Code::kUnsupported,
       {"ple_layer_ids is [2,5], wanted one layer"}},
      {"qwen4exp", {{"ple_layer_ids", {0}}}, Code::kCorrupt, {"ple_layer_ids is [0]", "from 1 to 8"}},
      {"qwen4exp",
       {{"ple_layer_ids", {4}}},
       Code::kUnsupported,
       {"ple_layer_ids is [4]", "linear_attention"}},
      {"qwen4exp", {{"ple_embed_dim", 65}}, Code::kCorrupt, {"ple_embed_dim is 65"}},
      {"qwen4exp", {{"eos_token_id", nullptr}}, Code::kNotFound, {"eos_token_id is missing"}},
      {"qwen4exp", {{"eos_token_id", 512}}, Code::kCorrupt, {"eos_token_id is 512", "below 512"}},
      {"qwen4exp", {{"hc_count", 0}}, Code::kCorrupt, {"hc_count is 0"}},
      {"qwen4exp", {{"seed", -1}}, Code::kCorrupt, {"seed is -1"}},
  };
  for (const BadConfig& bad : table) {
    TestCheckpoint checkpoint = TestCheckpoint::vectors(bad.family);
    checkpoint.config.merge_patch(bad.patch);
    const auto report = converted(checkpoint);
    for (const std::string& part : bad.parts) EXPECT_TRUE(fails_with(report, bad.code, part)) << bad.patch;
  }
}

TEST(BadConfigTest, FilesThatAreMissingOrNoJson) {
  MemoryStorage storage;
  EXPECT_TRUE(fails_with(convert_in(storage, convert_options("bf16")), Code::kNotFound, "ckpt/config.json"));
  for (const std::string text : {"", "{", "[1]", "{\"a\": 1} x", "\xff\xfe"}) {
    storage.put(kCheckpoint / "config.json", text);
    EXPECT_TRUE(fails_with(convert_in(storage, convert_options("bf16")), Code::kCorrupt, "ckpt/config.json"))
        << text;
  }
  const TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3");
  storage.put(kCheckpoint / "config.json", checkpoint.config.dump());
  EXPECT_FALSE(convert_in(storage, convert_options("bf16")));  // no weights
}

}  // namespace
}  // namespace forebay
