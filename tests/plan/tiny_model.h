/// A model small enough to add up by hand.
#pragma once

#include "plan/model_footprint.h"

namespace forebay::testing {

inline TensorInfo f32_tensor(std::string name, std::initializer_list<uint64_t> ne) {
  TensorInfo tensor;
  tensor.name = std::move(name);
  tensor.n_dims = static_cast<int>(ne.size());
  std::copy(ne.begin(), ne.end(), tensor.ne.begin());
  tensor.bytes = 4 * tensor.n_elements();
  return tensor;
}

/// Two blocks of attention and 4 experts, 2 used; width 32, 2 query heads and 1 K/V head of 16, experts 64
/// wide, 100 tokens.
inline ModelConfig tiny_config() {
  ModelConfig c;
  c.family = Family::kQwen3Moe;
  c.architecture = "qwen3moe";
  c.name = "tiny";
  c.n_blocks = 2;
  c.d_model = 32;
  c.n_vocab = 100;
  c.context_length = 1 << 20;
  c.mixers = {MixerKind::kAttention, MixerKind::kAttention};
  c.attention.shape.n_heads = 2;
  c.attention.shape.n_kv_heads = 1;
  c.attention.shape.head_dim = 16;
  c.block_cells = {0, 0};
  c.ffn = {.d_ffn = 0, .n_experts = 4, .n_used = 2, .d_expert = 64, .d_shared = 0, .weights_scale = 1};
  return c;
}

inline std::vector<TensorInfo> tiny_tensors() {
  std::vector<TensorInfo> tensors = {f32_tensor("token_embd.weight", {32, 100}),
                                     f32_tensor("output.weight", {32, 100}),
                                     f32_tensor("output_norm.weight", {32})};
  for (int block = 0; block < 2; ++block) {
    const std::string prefix = "blk." + std::to_string(block) + ".";
    tensors.push_back(f32_tensor(prefix + "attn_norm.weight", {32}));
    tensors.push_back(f32_tensor(prefix + "attn_q.weight", {32, 32}));
    tensors.push_back(f32_tensor(prefix + "ffn_gate_inp.weight", {32, 4}));
    tensors.push_back(f32_tensor(prefix + "ffn_gate_exps.weight", {32, 64, 4}));
    tensors.push_back(f32_tensor(prefix + "ffn_up_exps.weight", {32, 64, 4}));
    tensors.push_back(f32_tensor(prefix + "ffn_down_exps.weight", {64, 32, 4}));
  }
  return tensors;
}

inline ModelFootprint tiny_model() {
  return ModelFootprint::from_tensors(tiny_config(), tiny_tensors(), false);
}

}  // namespace forebay::testing
