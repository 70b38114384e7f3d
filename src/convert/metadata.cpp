#include "convert/metadata.h"

namespace forebay::convert {
namespace {

/// Sets keys under the architecture's prefix.
class Keys {
 public:
  Keys(GgufMetadata& metadata, const std::string& architecture)
      : metadata_(metadata), prefix_(architecture + ".") {}

  void set(const char* key, GgufValue value) { metadata_.set(prefix_ + key, std::move(value)); }
  void integer(const char* key, uint64_t value) { set(key, GgufValue::u32(static_cast<uint32_t>(value))); }
  void number(const char* key, double value) { set(key, GgufValue::f32(static_cast<float>(value))); }

 private:
  GgufMetadata& metadata_;
  std::string prefix_;
};

void set_rope(Keys& keys, const RopeConfig& rope) {
  keys.integer("rope.dimension_count", rope.n_rot);
  keys.number("rope.freq_base", rope.theta);
  if (!rope.sections.empty()) {
    std::vector<int64_t> sections(rope.sections.begin(), rope.sections.end());
    sections.resize(4);  // readers want four, the last for a component that is not there
    keys.set("rope.dimension_sections", GgufValue::i32_array(std::move(sections)));
  }
  if (rope.scaling.empty()) return;
  keys.set("rope.scaling.type", GgufValue::string(rope.scaling));
  keys.number("rope.scaling.factor", rope.scaling_factor);
  if (rope.original_context != 0) keys.integer("rope.scaling.original_context_length", rope.original_context);
}

void set_mixers(Keys& keys, const CheckpointConfig& config, uint64_t n_blocks) {
  if (config.attention_interval != 0) {
    keys.integer("full_attention_interval", config.attention_interval);
  } else {
    std::vector<bool> recurrent = config.recurrent;
    recurrent.resize(n_blocks);
    keys.set("attention.recurrent_layers", GgufValue::bool_array(std::move(recurrent)));
  }
  const GatedDeltaDims& g = config.gated_delta;
  keys.integer("ssm.conv_kernel", g.conv_kernel);
  keys.integer("ssm.state_size", g.k_dim);
  keys.integer("ssm.group_count", g.n_k_heads);
  keys.integer("ssm.time_step_rank", g.n_v_heads);
  keys.integer("ssm.inner_size", g.value_width());
}

void set_sparse_attention(Keys& keys, const CheckpointConfig& config, uint64_t n_blocks) {
  keys.integer("hyper_connection.count", config.streams.n_streams);
  keys.integer("hyper_connection.low_rank", config.streams.low_rank);
  keys.integer("attention.indexer.head_count", config.indexer.n_heads);
  keys.integer("attention.indexer.key_length", config.indexer.head_dim);
  keys.integer("attention.indexer.top_k", config.indexer.budget_tokens);
  // 0 = no index: recurrent blocks, and the draft head, which attends densely.
  std::vector<uint64_t> ratios(n_blocks, 0);
  for (uint64_t i = 0; i < config.n_blocks; ++i)
    if (!config.recurrent[i]) ratios[i] = config.indexer.block_tokens;
  keys.set("attention.compress_ratios", GgufValue::u32_array(std::move(ratios)));
}

void set_ngrams(Keys& keys, const NgramConfig& ngram, const NgramHash& hash) {
  if (ngram.block < 0) return;
  keys.set("ple.layers", GgufValue::u32_array({static_cast<uint64_t>(ngram.block)}));
  keys.integer("ple.ngram_size", ngram.ngram_size);
  keys.integer("ple.heads_per_ngram", ngram.heads_per_ngram);
  keys.integer("ple.conv_kernel", ngram.conv_kernel);
  keys.integer("ple.eos_token_id", ngram.eos);
  if (ngram.image_token) keys.integer("ple.image_token_id", *ngram.image_token);
  keys.integer("embedding_length_per_layer_input", ngram.row_width());
  keys.set("ple.layer_multipliers", GgufValue::u64_array(hash.multipliers));
  keys.set("ple.head_vocab_sizes", GgufValue::u64_array(hash.head_sizes));
  keys.set("ple.head_offsets", GgufValue::u64_array(hash.head_offsets));
}

}  // namespace

GgufMetadata model_metadata(const CheckpointConfig& config, const NgramHash& hash, HeadBlock head) {
  GgufMetadata metadata;
  metadata.set("general.architecture", GgufValue::string(config.architecture));
  metadata.set("general.type", GgufValue::string("model"));

  Keys keys(metadata, config.architecture);
  const uint64_t n_blocks = config.n_blocks + (head == HeadBlock::kAbsent ? 0 : 1);
  keys.integer("block_count", n_blocks);
  if (head != HeadBlock::kAbsent) keys.integer("nextn_predict_layers", 1);
  if (head == HeadBlock::kAlone) keys.set("nextn_shared_target_tensors", GgufValue::boolean(true));
  keys.integer("context_length", config.context_length);
  keys.integer("embedding_length", config.d_model);
  if (!config.has_experts()) keys.integer("feed_forward_length", config.d_ffn);
  keys.integer("attention.head_count", config.attention.n_heads);
  keys.integer("attention.head_count_kv", config.attention.n_kv_heads);
  keys.integer("attention.key_length", config.attention.head_dim);
  keys.integer("attention.value_length", config.attention.head_dim);
  keys.number("attention.layer_norm_rms_epsilon", config.rms_eps);
  if (config.family == Family::kLlama) keys.integer("vocab_size", config.n_vocab);
  set_rope(keys, config.rope);
  if (config.has_experts()) {
    keys.integer("expert_count", config.experts.n_experts);
    keys.integer("expert_used_count", config.experts.n_used);
    keys.integer("expert_feed_forward_length", config.experts.width);
    if (config.experts.shared_width != 0)
      keys.integer("expert_shared_feed_forward_length", config.experts.shared_width);
  }
  if (config.is_hybrid()) set_mixers(keys, config, n_blocks);
  if (config.family == Family::kQwen4Exp) {
    set_sparse_attention(keys, config, n_blocks);
    set_ngrams(keys, config.ngram, hash);
  }
  return metadata;
}

}  // namespace forebay::convert
