/// Every family's tensors, types and keys. What the values are is the subject of transforms_test.cpp.
#include <cmath>

#include <gtest/gtest.h>

#include "test_checkpoint.h"

namespace forebay {
namespace {

/// Tensors of a file, counted by hand from the format's description.
const std::map<std::string, size_t> kTensors = {
    {"qwen2", 3 + 3 * 12},  // embedding, norm, head; 2 norms, 4 projections, 3 biases, 3 planes
    {"qwen3", 3 + 3 * 11},
    {"qwen3moe", 3 + 3 * (2 + 6 + 4)},
    {"qwen3next", 3 + 3 * (2 + 8 + 8) + (2 + 6 + 8)},
    {"qwen35moe", 3 + 3 * (2 + 9 + 8) + (2 + 6 + 8)},
    {"qwen4exp", 6 + 8 * 8 + 2 * 10 + 6 * 9 + 6 + 8 * 8},
};

bool is_structure(const std::string& name) {
  for (const char* part :
       {"norm", "conv1d", "inject", "ssm_a", "ssm_beta", "ssm_ba", "ssm_dt", "ffn_gate_inp", ".bias"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

class FamiliesTest : public testing::TestWithParam<std::string> {};

TEST_P(FamiliesTest, Bf16) {
  const Converted converted(TestCheckpoint::vectors(GetParam()), convert_options("bf16"));
  EXPECT_EQ(converted.report.architecture, GetParam());
  EXPECT_EQ(converted.file->tensors().size(), kTensors.at(GetParam()));
  for (const TensorInfo& tensor : converted.file->tensors()) {
    EXPECT_EQ(tensor.type, is_structure(tensor.name) ? DType::kF32 : DType::kBF16) << tensor.name;
    EXPECT_EQ(tensor.n_dims == 1, is_structure(tensor.name) && tensor.n_rows() == 1) << tensor.name;
  }
  // The vectors are BF16 and F32: nothing is lost, and the parameters are all there.
  uint64_t n_parameters = 0;
  for (const TensorInfo& tensor : converted.file->tensors()) n_parameters += tensor.n_elements();
  EXPECT_EQ(converted.report.n_parameters, n_parameters);
}

TEST_P(FamiliesTest, Q80IsCloseToBf16) {
  const TestCheckpoint checkpoint = TestCheckpoint::vectors(GetParam());
  const Converted exact(checkpoint, convert_options("bf16")), rounded(checkpoint, convert_options("q8_0"));
  ASSERT_EQ(rounded.file->tensors().size(), exact.file->tensors().size());
  for (const TensorInfo& tensor : rounded.file->tensors()) {
    const bool is_indexer = tensor.name.find("indexer.") != std::string::npos;
    const DType wanted = is_structure(tensor.name) ? DType::kF32 : is_indexer ? DType::kBF16 : DType::kQ8_0;
    EXPECT_EQ(tensor.type, wanted) << tensor.name;
    const std::vector<float> a = exact.floats(tensor.name), b = rounded.floats(tensor.name);
    for (size_t block = 0; block < a.size(); block += 32) {
      // Half a step, and up to 127 steps of a scale that is rounded to 11 bits.
      float largest = 0;
      for (size_t i = block; i < std::min(block + 32, a.size()); ++i)
        largest = std::max(largest, std::abs(a[i]));
      for (size_t i = block; i < std::min(block + 32, a.size()); ++i)
        ASSERT_NEAR(a[i], b[i], largest / 127 * 0.57f) << tensor.name << " value " << i;
    }
  }
}

TEST_P(FamiliesTest, Q4KFallsBackWhereRowsAreShort) {
  const Converted converted(TestCheckpoint::vectors(GetParam()), convert_options("q4_k"));
  for (const TensorInfo& tensor : converted.file->tensors()) {
    const bool is_bulk = tensor.name.find("_exps.") != std::string::npos ||
                         tensor.name.find(".ffn_gate.") != std::string::npos ||
                         tensor.name.find(".ffn_up.") != std::string::npos ||
                         tensor.name.find(".ffn_down.") != std::string::npos ||
                         tensor.name == "per_layer_token_embd.weight";
    const bool is_indexer = tensor.name.find("indexer.") != std::string::npos;
    const DType wanted = is_structure(tensor.name) ? DType::kF32
                         : is_indexer              ? DType::kBF16
                         : is_bulk                 ? DType::kQ5_0  // no row here has 256 values
                                                   : DType::kQ8_0;
    EXPECT_EQ(tensor.type, wanted) << tensor.name;
  }
  EXPECT_FALSE(converted.report.notes.empty());
}

TEST_P(FamiliesTest, DryRunForetellsTheFile) {
  const TestCheckpoint checkpoint = TestCheckpoint::vectors(GetParam());
  ConvertOptions options = convert_options("q4_0");
  const Converted written(checkpoint, options);
  options.dry_run = true;
  Converted planned(checkpoint, options);
  EXPECT_FALSE(planned.storage.exists(kOutput));
  ASSERT_EQ(planned.report.outputs.size(), 1u);
  EXPECT_EQ(planned.report.outputs[0].path, kOutput);
  EXPECT_EQ(planned.report.outputs[0].n_tensors, static_cast<int>(written.file->tensors().size()));
  EXPECT_EQ(planned.report.notes, written.report.notes);
  uint64_t n_bytes = 0;
  std::map<DType, uint64_t> by_type;
  for (const TensorInfo& tensor : written.file->tensors()) {
    n_bytes += tensor.bytes;
    by_type[tensor.type] += tensor.bytes;
  }
  EXPECT_EQ(planned.report.outputs[0].tensor_bytes, n_bytes);
  for (const auto& [type, share] : planned.report.by_type)
    EXPECT_EQ(share.bytes, by_type.at(type)) << name_of(type);
  EXPECT_EQ(planned.report.by_type.size(), by_type.size());
}

INSTANTIATE_TEST_SUITE_P(Vectors, FamiliesTest, testing::ValuesIn(kVectorFamilies),
                         [](const auto& info) { return info.param; });

/// Integer keys of a converted file under its architecture.
struct KeyReader {
  const GgufFile& file;
  std::string architecture;

  uint64_t integer(const std::string& key) const {
    return file.metadata().get_uint(architecture + "." + key).value();
  }
  double number(const std::string& key) const {
    return file.metadata().get_float(architecture + "." + key).value();
  }
  std::vector<uint64_t> integers(const std::string& key) const {
    return file.metadata().get_uints(architecture + "." + key).value();
  }
  bool has(const std::string& key) const { return file.metadata().has(architecture + "." + key); }
};

TEST(FamilyKeysTest, Dense) {
  const Converted qwen2(TestCheckpoint::vectors("qwen2"), convert_options("f16"));
  const KeyReader keys{*qwen2.file, "qwen2"};
  EXPECT_EQ(keys.integer("block_count"), 3u);
  EXPECT_EQ(keys.integer("context_length"), 4096u);
  EXPECT_EQ(keys.integer("embedding_length"), 64u);
  EXPECT_EQ(keys.integer("feed_forward_length"), 96u);
  EXPECT_EQ(keys.integer("attention.head_count"), 4u);
  EXPECT_EQ(keys.integer("attention.head_count_kv"), 2u);
  EXPECT_EQ(keys.integer("attention.key_length"), 16u);  // no head_dim: width / heads
  EXPECT_EQ(keys.integer("rope.dimension_count"), 16u);
  EXPECT_EQ(keys.number("rope.freq_base"), 1e6);
  EXPECT_NEAR(keys.number("attention.layer_norm_rms_epsilon"), 1e-6, 1e-12);
  EXPECT_FALSE(keys.has("rope.scaling.type"));
  const GgufMetadata& general = qwen2.file->metadata();
  EXPECT_EQ(*general.get_string("general.architecture"), "qwen2");
  EXPECT_EQ(*general.get_string("general.name"), "test");
  EXPECT_EQ(*general.get_uint("general.file_type"), 1u);

  const Converted qwen3(TestCheckpoint::vectors("qwen3"), convert_options("bf16"));
  EXPECT_EQ((KeyReader{*qwen3.file, "qwen3"}.integer("attention.key_length")), 32u);  // head_dim, not 64 / 4
}

TEST(FamilyKeysTest, TheDirectoryIsTheName) {
  ConvertOptions options = convert_options("bf16");
  options.name.clear();
  const Converted converted(TestCheckpoint::vectors("qwen3"), options);
  EXPECT_EQ(*converted.file->metadata().get_string("general.name"), "ckpt");
}

TEST(FamilyKeysTest, Qwen3Moe) {
  const Converted converted(TestCheckpoint::vectors("qwen3moe"), convert_options("bf16"));
  const KeyReader keys{*converted.file, "qwen3moe"};
  EXPECT_EQ(keys.integer("expert_count"), 16u);
  EXPECT_EQ(keys.integer("expert_used_count"), 4u);
  EXPECT_EQ(keys.integer("expert_feed_forward_length"), 32u);
  EXPECT_FALSE(keys.has("expert_shared_feed_forward_length"));
  EXPECT_FALSE(keys.has("ssm.state_size"));
}

TEST(FamilyKeysTest, Hybrids) {
  for (const std::string family : {"qwen3next", "qwen35moe"}) {
    const Converted converted(TestCheckpoint::vectors(family), convert_options("bf16"));
    const KeyReader keys{*converted.file, family};
    EXPECT_EQ(keys.integer("full_attention_interval"), 4u);
    EXPECT_FALSE(keys.has("attention.recurrent_layers"));
    EXPECT_EQ(keys.integer("rope.dimension_count"), 8u);  // a quarter of 32
    EXPECT_EQ(keys.number("rope.freq_base"), 1e7);
    EXPECT_EQ(keys.integer("ssm.conv_kernel"), 4u);
    EXPECT_EQ(keys.integer("ssm.state_size"), 32u);
    EXPECT_EQ(keys.integer("ssm.group_count"), 2u);
    EXPECT_EQ(keys.integer("ssm.time_step_rank"), 6u);
    EXPECT_EQ(keys.integer("ssm.inner_size"), 192u);
    EXPECT_EQ(keys.integer("expert_shared_feed_forward_length"), 32u);
    EXPECT_FALSE(keys.has("nextn_predict_layers"));
    EXPECT_EQ(keys.has("rope.dimension_sections"), family == "qwen35moe");
  }
  const Converted converted(TestCheckpoint::vectors("qwen35moe"), convert_options("bf16"));
  EXPECT_EQ((KeyReader{*converted.file, "qwen35moe"}.integers("rope.dimension_sections")),
            (std::vector<uint64_t>{2, 1, 1, 0}));
}

TEST(FamilyKeysTest, Qwen4Exp) {
  const Converted converted(TestCheckpoint::vectors("qwen4exp"), convert_options("bf16"));
  const KeyReader keys{*converted.file, "qwen4exp"};
  EXPECT_EQ(keys.integer("block_count"), 8u);
  EXPECT_EQ(keys.integer("hyper_connection.count"), 4u);
  EXPECT_EQ(keys.integer("hyper_connection.low_rank"), 32u);
  EXPECT_EQ(keys.integer("attention.indexer.head_count"), 4u);
  EXPECT_EQ(keys.integer("attention.indexer.key_length"), 32u);
  EXPECT_EQ(keys.integer("attention.indexer.top_k"), 64u);
  EXPECT_EQ(keys.integers("attention.compress_ratios"), (std::vector<uint64_t>{0, 0, 0, 4, 0, 0, 0, 4}));
  EXPECT_EQ(keys.integers("rope.dimension_sections"), (std::vector<uint64_t>{2, 1, 1, 0}));
  EXPECT_EQ(keys.integers("ple.layers"), std::vector<uint64_t>{1});  // the checkpoint counts from 1
  EXPECT_EQ(keys.integer("ple.ngram_size"), 3u);
  EXPECT_EQ(keys.integer("ple.heads_per_ngram"), 1u);
  EXPECT_EQ(keys.integer("ple.conv_kernel"), 4u);
  EXPECT_EQ(keys.integer("ple.eos_token_id"), 7u);
  EXPECT_EQ(keys.integer("embedding_length_per_layer_input"), 32u);
  EXPECT_EQ(keys.integers("ple.head_vocab_sizes"), (std::vector<uint64_t>{503, 509}));
  EXPECT_EQ(keys.integers("ple.head_offsets"), (std::vector<uint64_t>{0, 503}));
}

TEST(FamilyKeysTest, IrregularLayersAreListed) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen35moe");
  // Attention first: no interval explains it.
  std::map<std::string, TestTensor> swapped;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    std::string renamed = name;
    if (name.starts_with("model.layers.0.")) renamed[13] = '3';
    if (name.starts_with("model.layers.3.")) renamed[13] = '0';
    swapped[renamed] = tensor;
  }
  checkpoint.tensors = swapped;
  checkpoint.config["layer_types"] = {"full_attention", "linear_attention", "linear_attention",
                                      "linear_attention"};
  const Converted converted(checkpoint, convert_options("bf16"));
  EXPECT_FALSE(converted.file->metadata().has("qwen35moe.full_attention_interval"));
  EXPECT_EQ(*converted.file->metadata().get_ints("qwen35moe.attention.recurrent_layers"),
            (std::vector<int64_t>{0, 1, 1, 1}));
}

TEST(FamilyKeysTest, OldSpellingOfRope) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen35moe");
  const Converted now(checkpoint, convert_options("bf16"));
  checkpoint.config.erase("rope_parameters");
  checkpoint.config["rope_theta"] = 10000000;
  checkpoint.config["partial_rotary_factor"] = 0.25;
  checkpoint.config["rope_scaling"] = {{"type", "default"}, {"mrope_section", {2, 1, 1}}};
  const Converted old(checkpoint, convert_options("bf16"));
  EXPECT_EQ(old.bytes(), now.bytes());
}

TEST(FamilyKeysTest, ScaledRope) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3");
  checkpoint.config["rope_parameters"] = {{"rope_type", "yarn"},
                                          {"rope_theta", 1e6},
                                          {"factor", 4.0},
                                          {"original_max_position_embeddings", 1024}};
  const Converted converted(checkpoint, convert_options("bf16"));
  const KeyReader keys{*converted.file, "qwen3"};
  EXPECT_EQ(*converted.file->metadata().get_string("qwen3.rope.scaling.type"), "yarn");
  EXPECT_EQ(keys.number("rope.scaling.factor"), 4);
  EXPECT_EQ(keys.integer("rope.scaling.original_context_length"), 1024u);
}

TEST(FamilyKeysTest, TiedEmbeddingsHaveNoOutput) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3");
  checkpoint.config["tie_word_embeddings"] = true;
  const Converted with_spare(checkpoint, convert_options("bf16"));
  EXPECT_EQ(with_spare.file->find("output.weight"), nullptr);
  EXPECT_EQ(with_spare.report.notes[0], "left out: 1 tensor of a tied output head");

  checkpoint.tensors.erase("lm_head.weight");
  const Converted without(checkpoint, convert_options("bf16"));
  EXPECT_EQ(without.bytes(), with_spare.bytes());
  checkpoint.config.erase("tie_word_embeddings");  // nothing said, nothing there
  EXPECT_EQ(Converted(checkpoint, convert_options("bf16")).bytes(), without.bytes());
}

}  // namespace
}  // namespace forebay
