/// Values: every GGUF tensor against loops written from the format's description, not from the converter.
#include <cmath>

#include <gtest/gtest.h>

#include "test_checkpoint.h"

namespace forebay {
namespace {

using Floats = std::vector<float>;

/// Rows of `width` values in the given order.
Floats rows_of(const Floats& values, size_t width, const std::vector<size_t>& rows) {
  Floats out;
  for (const size_t row : rows)
    out.insert(out.end(), values.begin() + static_cast<ptrdiff_t>(row * width),
               values.begin() + static_cast<ptrdiff_t>((row + 1) * width));
  return out;
}

Floats plus_one(Floats values) {
  for (float& value : values) value += 1.0f;
  return values;
}

// The vectors' recurrent blocks: 2 K heads and 6 V heads of 32, so r = 3. GGUF head j * 2 + k is checkpoint
// head k * 3 + j.
constexpr size_t kTiled[] = {0, 3, 1, 4, 2, 5};
constexpr size_t kHeadDim = 32, kKeyWidth = 64, kValueWidth = 192, kWidth = 64;

/// First rows kept, then heads of `rows_per_head` rows in tiled order.
std::vector<size_t> tiled_rows(size_t first, size_t rows_per_head) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < first; ++row) rows.push_back(row);
  for (const size_t head : kTiled)
    for (size_t row = 0; row < rows_per_head; ++row) rows.push_back(first + head * rows_per_head + row);
  return rows;
}

class Compare {
 public:
  explicit Compare(TestCheckpoint checkpoint)
      : checkpoint_(std::move(checkpoint)), converted_(checkpoint_, convert_options("f32")) {}

  Floats source(const std::string& name) const { return checkpoint_.tensors.at(name).floats(); }
  Floats output(const std::string& name) const { return converted_.floats(name); }
  void same(const std::string& to, const std::string& from) const {
    EXPECT_EQ(output(to), source(from)) << to;
  }
  void one_more(const std::string& to, const std::string& from) const {
    EXPECT_EQ(output(to), plus_one(source(from))) << to;
  }

 private:
  TestCheckpoint checkpoint_;
  Converted converted_;
};

void check_experts(const Compare& c, const std::string& to, const std::string& from) {
  const Floats both = c.source(from + "experts.gate_up_proj");  // 16 experts of 32 gate rows, then 32 up rows
  std::vector<size_t> gate, up;
  for (size_t expert = 0; expert < 16; ++expert)
    for (size_t row = 0; row < 32; ++row) {
      gate.push_back(expert * 64 + row);
      up.push_back(expert * 64 + 32 + row);
    }
  EXPECT_EQ(c.output(to + "ffn_gate_exps.weight"), rows_of(both, kWidth, gate));
  EXPECT_EQ(c.output(to + "ffn_up_exps.weight"), rows_of(both, kWidth, up));
  c.same(to + "ffn_down_exps.weight", from + "experts.down_proj");
  c.same(to + "ffn_gate_inp.weight", from + "gate.weight");
}

void check_shared_expert(const Compare& c, const std::string& to, const std::string& from) {
  c.same(to + "ffn_gate_inp_shexp.weight", from + "shared_expert_gate.weight");
  c.same(to + "ffn_gate_shexp.weight", from + "shared_expert.gate_proj.weight");
  c.same(to + "ffn_up_shexp.weight", from + "shared_expert.up_proj.weight");
  c.same(to + "ffn_down_shexp.weight", from + "shared_expert.down_proj.weight");
}

void check_tiled_gated_delta(const Compare& c, const std::string& to, const std::string& from) {
  EXPECT_EQ(c.output(to + "attn_qkv.weight"),
            rows_of(c.source(from + "in_proj_qkv.weight"), kWidth, tiled_rows(2 * kKeyWidth, kHeadDim)));
  EXPECT_EQ(c.output(to + "attn_gate.weight"),
            rows_of(c.source(from + "in_proj_z.weight"), kWidth, tiled_rows(0, kHeadDim)));
  EXPECT_EQ(c.output(to + "ssm_alpha.weight"),
            rows_of(c.source(from + "in_proj_a.weight"), kWidth, tiled_rows(0, 1)));
  EXPECT_EQ(c.output(to + "ssm_beta.weight"),
            rows_of(c.source(from + "in_proj_b.weight"), kWidth, tiled_rows(0, 1)));
  EXPECT_EQ(c.output(to + "ssm_dt.bias"), rows_of(c.source(from + "dt_bias"), 1, tiled_rows(0, 1)));
  EXPECT_EQ(c.output(to + "ssm_conv1d.weight"),
            rows_of(c.source(from + "conv1d.weight"), 4, tiled_rows(2 * kKeyWidth, kHeadDim)));
  const Floats a_log = rows_of(c.source(from + "A_log"), 1, tiled_rows(0, 1)), a = c.output(to + "ssm_a");
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i] / -std::exp(static_cast<double>(a_log[i])), 1, 3e-7);
  c.same(to + "ssm_norm.weight", from + "norm.weight");  // around one already
  // The output projection takes its columns in the heads' new order: a row is 6 heads of 32.
  const Floats out = c.source(from + "out_proj.weight");
  Floats reordered;
  for (size_t row = 0; row < kWidth; ++row) {
    const Floats one(out.begin() + static_cast<ptrdiff_t>(row * kValueWidth),
                     out.begin() + static_cast<ptrdiff_t>((row + 1) * kValueWidth));
    const Floats part = rows_of(one, kHeadDim, {std::begin(kTiled), std::end(kTiled)});
    reordered.insert(reordered.end(), part.begin(), part.end());
  }
  EXPECT_EQ(c.output(to + "ssm_out.weight"), reordered);
}

TEST(TransformsTest, Qwen4Exp) {
  const Compare c(TestCheckpoint::vectors("qwen4exp"));
  c.same("token_embd.weight", "model.embed_tokens.weight");
  c.same("output.weight", "lm_head.weight");
  c.one_more("output_hc_norm.weight", "model.hyper_connection_mixer.hc_norm.weight");
  c.same("output_hc_down.weight", "model.hyper_connection_mixer.input_mix_weight_down.weight");
  c.same("output_hc_up.weight", "model.hyper_connection_mixer.input_mix_weight_up.weight");
  for (const auto& [to, from] : {std::pair("blk.2.hc_attn_", "model.layers.2.attn_hyper_connection."),
                                 std::pair("blk.7.hc_ffn_", "model.layers.7.mlp_hyper_connection.")}) {
    c.one_more(std::string(to) + "norm.weight", std::string(from) + "hc_norm.weight");
    c.same(std::string(to) + "down.weight", std::string(from) + "input_mix_weight_down.weight");
    c.same(std::string(to) + "up.weight", std::string(from) + "input_mix_weight_up.weight");
    c.same(std::string(to) + "inject.weight", std::string(from) + "block_inject_weight.weight");
  }

  check_tiled_gated_delta(c, "blk.4.", "model.layers.4.linear_attn.");

  const std::string attention = "model.layers.3.self_attn.";
  c.same("blk.3.attn_q.weight", attention + "q_proj.weight");  // query and gate stay side by side
  c.same("blk.3.attn_k.weight", attention + "k_proj.weight");
  c.same("blk.3.attn_v.weight", attention + "v_proj.weight");
  c.same("blk.3.attn_output.weight", attention + "o_proj.weight");
  c.one_more("blk.3.attn_q_norm.weight", attention + "q_norm.weight");
  c.one_more("blk.3.attn_k_norm.weight", attention + "k_norm.weight");
  const Floats indexer = c.source(attention + "indexer.index_qk_proj.weight");  // 128 query rows, 32 key rows
  EXPECT_EQ(c.output("blk.3.indexer.q_proj.weight"), Floats(indexer.begin(), indexer.begin() + 128 * 64));
  EXPECT_EQ(c.output("blk.3.indexer.k_proj.weight"), Floats(indexer.begin() + 128 * 64, indexer.end()));
  c.one_more("blk.3.indexer.q_norm.weight", attention + "indexer.q_layernorm.weight");
  c.one_more("blk.3.indexer.k_norm.weight", attention + "indexer.k_layernorm.weight");

  c.same("per_layer_token_embd.weight", "model.layers.1.ple.ple_embedding.ngram_embedding.weight");
  c.same("blk.1.ple_key.weight", "model.layers.1.ple.key_proj.weight");
  c.same("blk.1.ple_value.weight", "model.layers.1.ple.value_proj.weight");
  c.same("blk.1.ple_conv1d.weight", "model.layers.1.ple.conv1d.weight");
  for (const std::string norm : {"key", "query", "conv"})
    c.one_more("blk.1.ple_norm_" + norm + ".weight", "model.layers.1.ple.norm_" + norm + ".weight");
  check_experts(c, "blk.5.", "model.layers.5.mlp.");
  check_shared_expert(c, "blk.5.", "model.layers.5.mlp.");
}

TEST(TransformsTest, Qwen35Moe) {
  const Compare c(TestCheckpoint::vectors("qwen35moe"));
  c.one_more("output_norm.weight", "model.norm.weight");
  c.one_more("blk.1.attn_norm.weight", "model.layers.1.input_layernorm.weight");
  c.one_more("blk.1.post_attention_norm.weight", "model.layers.1.post_attention_layernorm.weight");
  check_tiled_gated_delta(c, "blk.0.", "model.layers.0.linear_attn.");
  c.same("blk.3.attn_q.weight", "model.layers.3.self_attn.q_proj.weight");
  c.one_more("blk.3.attn_k_norm.weight", "model.layers.3.self_attn.k_norm.weight");
  check_experts(c, "blk.2.", "model.layers.2.mlp.");
  check_shared_expert(c, "blk.2.", "model.layers.2.mlp.");
}

TEST(TransformsTest, Qwen3NextSplitsItsGroups) {
  const Compare c(TestCheckpoint::vectors("qwen3next"));
  const std::string from = "model.layers.0.linear_attn.";
  // Two groups of [q 32 | k 32 | v 96 | z 96] rows; V heads keep their grouped order.
  std::vector<size_t> qkv, z;
  for (const auto& [first, n] : {std::pair(0, 32), std::pair(32, 32), std::pair(64, 96)})
    for (size_t group = 0; group < 2; ++group)
      for (int row = 0; row < n; ++row) qkv.push_back(group * 256 + first + row);
  for (size_t group = 0; group < 2; ++group)
    for (size_t row = 0; row < 96; ++row) z.push_back(group * 256 + 160 + row);
  const Floats all = c.source(from + "in_proj_qkvz.weight");
  EXPECT_EQ(c.output("blk.0.attn_qkv.weight"), rows_of(all, kWidth, qkv));
  EXPECT_EQ(c.output("blk.0.attn_gate.weight"), rows_of(all, kWidth, z));
  c.same("blk.0.ssm_ba.weight", from + "in_proj_ba.weight");
  c.same("blk.0.ssm_conv1d.weight", from + "conv1d.weight");
  c.same("blk.0.ssm_dt.bias", from + "dt_bias");
  c.same("blk.0.ssm_norm.weight", from + "norm.weight");
  c.same("blk.0.ssm_out.weight", from + "out_proj.weight");
  c.one_more("blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight");
  c.one_more("blk.3.attn_q_norm.weight", "model.layers.3.self_attn.q_norm.weight");
  check_experts(c, "blk.3.", "model.layers.3.mlp.");
}

TEST(TransformsTest, PlainNormsStayAsTheyAre) {
  const Compare moe(TestCheckpoint::vectors("qwen3moe"));
  moe.same("output_norm.weight", "model.norm.weight");
  moe.same("blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight");
  moe.same("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight");
  moe.same("blk.2.attn_q_norm.weight", "model.layers.2.self_attn.q_norm.weight");
  moe.same("blk.2.attn_q.weight", "model.layers.2.self_attn.q_proj.weight");
  check_experts(moe, "blk.1.", "model.layers.1.mlp.");

  const Compare dense(TestCheckpoint::vectors("qwen2"));
  dense.same("blk.1.ffn_norm.weight", "model.layers.1.post_attention_layernorm.weight");
  dense.same("blk.1.attn_q.bias", "model.layers.1.self_attn.q_proj.bias");
  dense.same("blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj.weight");
  dense.same("blk.1.ffn_gate.weight", "model.layers.1.mlp.gate_proj.weight");
  dense.same("blk.1.ffn_up.weight", "model.layers.1.mlp.up_proj.weight");
  dense.same("blk.1.ffn_down.weight", "model.layers.1.mlp.down_proj.weight");
}

TEST(TransformsTest, LlamaInterleavesTheHalvesOfHeads) {
  const Compare c(TestCheckpoint::llama());
  // Heads of 16: row 2i comes from row i, row 2i + 1 from row 8 + i.
  const auto interleaved = [](size_t n_heads) {
    std::vector<size_t> rows;
    for (size_t head = 0; head < n_heads; ++head)
      for (size_t i = 0; i < 8; ++i) {
        rows.push_back(head * 16 + i);
        rows.push_back(head * 16 + 8 + i);
      }
    return rows;
  };
  EXPECT_EQ(c.output("blk.0.attn_q.weight"),
            rows_of(c.source("model.layers.0.self_attn.q_proj.weight"), kWidth, interleaved(4)));
  EXPECT_EQ(c.output("blk.0.attn_k.weight"),
            rows_of(c.source("model.layers.0.self_attn.k_proj.weight"), kWidth, interleaved(2)));
  c.same("blk.0.attn_v.weight", "model.layers.0.self_attn.v_proj.weight");
}

TEST(TransformsTest, StoredHashConstantsWin) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen4exp");
  const std::string name = "model.layers.1.ple.ple_embedding.layer_multipliers";
  const std::vector<uint64_t> multipliers = {(1ull << 53) + 1, 3, 5};  // not a double
  const auto bytes = std::as_bytes(std::span(multipliers));
  checkpoint.tensors.at(name).bytes.assign(bytes.begin(), bytes.end());
  const Converted converted(checkpoint, convert_options("bf16"));
  EXPECT_EQ(*converted.file->metadata().get_uints("qwen4exp.ple.layer_multipliers"), multipliers);
}

}  // namespace
}  // namespace forebay
