// Sizes against the published files.
#include "synth/geometry.h"

#include <map>

#include <gtest/gtest.h>

#include "small_models.h"
#include "support/result_matchers.h"

namespace forebay::synth {
namespace {

SynthPlan plan_of(const std::string& name, const GeometryChanges& changes = {},
                  const std::string& types = "q2_0") {
  SynthOptions options;
  options.geometry = must(changed(must(find_geometry(name)), changes));
  options.types = must(parse_type_plan(types, WeightSource::kRandom));
  return must(plan_synthetic(options));
}

std::vector<uint64_t> shape(const SynthPlan& plan, const std::string& name) {
  for (const SynthTensor& tensor : plan.tensors)
    if (tensor.name == name) return tensor.ne;
  return {};
}
DType type(const SynthPlan& plan, const std::string& name) {
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    if (plan.tensors[i].name == name) return plan.types[i];
  return DType::kI8;
}

using Shape = std::vector<uint64_t>;

TEST(Geometry, FlashNext) {
  GeometryChanges real_table;
  real_table.n_ngram_rows = 320'000'000;
  const SynthPlan plan = plan_of("qwen3.8-flash-next", real_table);
  EXPECT_EQ(plan.tensors.size(), 1224u);
  EXPECT_NEAR(static_cast<double>(plan.n_parameters), 176.94e9, 0.01e9);
  EXPECT_EQ(plan.expert_bytes, 3u * 2560 * 640 * 18 / 64);
  const std::map<std::string, Shape> expected = {
      {"token_embd.weight", {2560, 248320}},
      {"output_hc_norm.weight", {10240}},
      {"output_hc_down.weight", {10240, 320}},
      {"output_hc_up.weight", {320, 10240}},
      {"output_hc_inject.weight", {}},
      {"per_layer_token_embd.weight", {160, 320001536}},
      {"blk.0.hc_attn_inject.weight", {10240, 4}},
      {"blk.47.hc_ffn_up.weight", {320, 10240}},
      {"blk.3.attn_q.weight", {2560, 12288}},
      {"blk.3.attn_k.weight", {2560, 512}},
      {"blk.3.attn_output.weight", {6144, 2560}},
      {"blk.3.attn_q_norm.weight", {256}},
      {"blk.47.indexer.q_proj.weight", {2560, 512}},
      {"blk.47.indexer.k_proj.weight", {2560, 128}},
      {"blk.47.indexer.k_norm.weight", {128}},
      {"blk.3.attn_qkv.weight", {}},
      {"blk.2.attn_qkv.weight", {2560, 10240}},
      {"blk.2.attn_gate.weight", {2560, 6144}},
      {"blk.2.ssm_conv1d.weight", {4, 10240}},
      {"blk.2.ssm_alpha.weight", {2560, 48}},
      {"blk.2.ssm_beta.weight", {2560, 48}},
      {"blk.2.ssm_a", {48}},
      {"blk.2.ssm_dt.bias", {48}},
      {"blk.2.ssm_norm.weight", {128}},
      {"blk.2.ssm_out.weight", {6144, 2560}},
      {"blk.1.ple_key.weight", {2560, 10240}},
      {"blk.1.ple_value.weight", {2560, 2560}},
      {"blk.1.ple_norm_conv.weight", {10240}},
      {"blk.1.ple_conv1d.weight", {4, 10240}},
      {"blk.0.ffn_gate_inp.weight", {2560, 512}},
      {"blk.0.ffn_up_exps.weight", {2560, 640, 512}},
      {"blk.0.ffn_down_exps.weight", {640, 2560, 512}},
      {"blk.0.ffn_gate_inp_shexp.weight", {2560}},
      {"blk.0.ffn_down_shexp.weight", {640, 2560}},
      {"blk.0.attn_norm.weight", {}},
  };
  for (const auto& [name, ne] : expected) EXPECT_EQ(shape(plan, name), ne) << name;
  EXPECT_EQ(type(plan, "blk.0.ffn_down_exps.weight"), DType::kQ2_0);
  EXPECT_EQ(type(plan, "per_layer_token_embd.weight"), DType::kIQ4_NL);
  EXPECT_EQ(type(plan, "output.weight"), DType::kQ8_0);
  EXPECT_EQ(type(plan, "blk.3.indexer.q_proj.weight"), DType::kBF16);
  EXPECT_EQ(type(plan, "blk.0.ffn_gate_inp.weight"), DType::kF32);

  const GgufMetadata& m = plan.metadata;
  EXPECT_EQ(must(m.get_uints("qwen4exp.ple.layer_multipliers")),
            (Shape{23703573157769, 20109073645365, 8052911324071}));
  const Shape sizes = must(m.get_uints("qwen4exp.ple.head_vocab_sizes"));
  EXPECT_EQ(sizes.front(), 20000003u);
  EXPECT_EQ(sizes.back(), 20000171u);
  EXPECT_EQ(must(m.get_uint("qwen4exp.ple.eos_token_id")), 248044u);
  EXPECT_EQ(must(m.get_uint("tokenizer.ggml.eos_token_id")), 248046u);
  EXPECT_EQ(must(m.get_uints("qwen4exp.attention.compress_ratios")).size(), 48u);
  EXPECT_EQ(must(m.get_ints("qwen4exp.rope.dimension_sections")), (std::vector<int64_t>{11, 11, 10, 0}));
}

TEST(Geometry, FlashNextByDefaultIsAboutThirtyEightGibibytes) {
  const SynthPlan plan = plan_of("qwen3.8-flash-next");
  EXPECT_NEAR(static_cast<double>(plan.file_bytes) / (1ull << 30), 37.7, 0.5);
  const Shape table = shape(plan, "per_layer_token_embd.weight");
  EXPECT_NEAR(static_cast<double>(table[1]), 10e6, 0.01e6);
}

TEST(Geometry, Next80b) {
  const SynthPlan plan = plan_of("qwen3-next-80b");
  EXPECT_EQ(plan.tensors.size(), 843u);  // attn_qkv and attn_gate where older files have one ssm_in: 36 more
  EXPECT_NEAR(static_cast<double>(plan.n_parameters), 79.7e9, 0.2e9);
  EXPECT_EQ(shape(plan, "blk.0.ssm_ba.weight"), (Shape{2048, 64}));
  EXPECT_EQ(shape(plan, "blk.0.attn_qkv.weight"), (Shape{2048, 8192}));
  EXPECT_EQ(shape(plan, "blk.3.attn_q.weight"), (Shape{2048, 8192}));
  EXPECT_EQ(shape(plan, "blk.3.post_attention_norm.weight"), (Shape{2048}));
  EXPECT_EQ(shape(plan, "blk.0.ffn_down_exps.weight"), (Shape{512, 2048, 512}));
  EXPECT_EQ(shape(plan, "output_norm.weight"), (Shape{2048}));
}

TEST(Geometry, Qwen35) {
  const SynthPlan plan = plan_of("qwen3.5-35b-a3b");
  EXPECT_EQ(plan.tensors.size(), 733u);
  EXPECT_NEAR(static_cast<double>(plan.n_parameters), 34.7e9, 0.2e9);
  EXPECT_EQ(shape(plan, "blk.0.ssm_beta.weight"), (Shape{2048, 32}));
  EXPECT_EQ(shape(plan, "blk.39.ffn_gate_exps.weight"), (Shape{2048, 512, 256}));
}

TEST(Geometry, Qwen3Moe) {
  const SynthPlan plan = plan_of("qwen3-30b-a3b");
  EXPECT_EQ(plan.tensors.size(), 579u);
  EXPECT_NEAR(static_cast<double>(plan.n_parameters), 30.5e9, 0.1e9);
  EXPECT_EQ(shape(plan, "blk.47.attn_q.weight"), (Shape{2048, 4096}));
  EXPECT_EQ(shape(plan, "blk.47.attn_k.weight"), (Shape{2048, 512}));
  EXPECT_EQ(shape(plan, "blk.0.ffn_norm.weight"), (Shape{2048}));
  EXPECT_EQ(shape(plan, "blk.0.ffn_gate_inp_shexp.weight"), Shape{});
}

TEST(Geometry, ChangesOneSizeAndWhatDependsOnIt) {
  const Geometry real = must(find_geometry("qwen3.8-flash-next"));
  GeometryChanges changes;
  changes.head_dim = 128;
  changes.n_blocks = 8;
  const Geometry cut = must(changed(real, changes));
  EXPECT_EQ(cut.config.rope.n_rot, 32u);
  EXPECT_EQ(cut.config.rope.sections, (Shape{6, 5, 5}));
  EXPECT_EQ(cut.config.recurrent, (std::vector<bool>{true, true, true, false, true, true, true, false}));
  EXPECT_EQ(cut.config.d_model, real.config.d_model);
  const SynthPlan one_block = plan_of("qwen3.8-flash-next", {.n_blocks = 1});
  EXPECT_EQ(shape(one_block, "per_layer_token_embd.weight"), Shape{});
  ASSERT_EQ(one_block.notes.size(), 1u);
}

TEST(Geometry, RefusesWhatCannotBe) {
  const Geometry flash = must(find_geometry("qwen3.8-flash-next"));
  const Geometry dense = must(find_geometry("qwen3-30b-a3b"));
  EXPECT_TRUE(fails_with(find_geometry("qwen9"), Code::kInvalidArgument, "qwen9", "qwen3-next-80b"));
  const auto refuses = [](const Geometry& g, const GeometryChanges& changes, auto... parts) {
    return fails_with(changed(g, changes), Code::kInvalidArgument, parts...);
  };
  EXPECT_TRUE(refuses(flash, {.d_model = 100}, "width", "100", "32"));
  EXPECT_TRUE(refuses(flash, {.n_used = 65}, "used", "65", "64"));
  EXPECT_TRUE(refuses(flash, {.n_experts = 4}, "used", "10", "4"));
  EXPECT_TRUE(refuses(flash, {.expert_width = 50}, "expert width", "50"));
  EXPECT_TRUE(refuses(flash, {.n_kv_heads = 5}, "5", "24"));
  EXPECT_TRUE(refuses(flash, {.n_delta_value_heads = 20}, "20", "16"));
  EXPECT_TRUE(refuses(dense, {.shared_width = 64}, "qwen3moe", "shared"));
  EXPECT_TRUE(refuses(dense, {.n_ngram_rows = 64}, "qwen3moe", "n-gram"));
}

TEST(Plan, RefusesTypesAndStatisticsThatCannotBe) {
  SynthOptions options = small_options("qwen3-30b-a3b", "q2_0,blk.99.*=q8_0");
  EXPECT_TRUE(fails_with(plan_synthetic(options), Code::kInvalidArgument, "blk.99.*"));
  options = small_options("qwen3-30b-a3b");
  options.routing.locality = 0.99;
  EXPECT_TRUE(fails_with(plan_synthetic(options), Code::kInvalidArgument, "locality", "0.99"));
  options.routing = {.skew = -1};
  EXPECT_TRUE(fails_with(plan_synthetic(options), Code::kInvalidArgument, "skew", "-1"));
  options = small_options("qwen3-30b-a3b");
  options.geometry.config.n_vocab = 100;
  EXPECT_TRUE(fails_with(plan_synthetic(options), Code::kInvalidArgument, "vocabulary", "100"));
}

}  // namespace
}  // namespace forebay::synth
