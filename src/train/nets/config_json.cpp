#include "train/nets/config_json.h"

#include <cmath>

#include "convert/metadata.h"
#include "convert/ngram_hash.h"

namespace forebay::train {
namespace {

using Json = nlohmann::ordered_json;

/// A bound f32 written so that reading gives the same f32: 1e-06, not 9.99999997e-07.
double shortest(float value) {
  return std::strtod(fmt::format("{}", value).c_str(), nullptr);
}

void set_hybrid(const ModelConfig& c, Json& json) {
  Json& kinds = json["layer_types"] = Json::array();
  for (const MixerKind mixer : c.mixers)
    kinds.push_back(mixer == MixerKind::kGatedDelta ? "linear_attention" : "full_attention");
  const GatedDeltaConfig& g = c.gated_delta;
  json["linear_conv_kernel_dim"] = g.conv_kernel;
  json["linear_key_head_dim"] = g.shape.k_dim;
  json["linear_value_head_dim"] = g.shape.v_dim;
  json["linear_num_key_heads"] = g.shape.n_k_heads;
  json["linear_num_value_heads"] = g.shape.n_v_heads;
  json["num_experts"] = c.ffn.n_experts;
  json["num_experts_per_tok"] = c.ffn.n_used;
  json["norm_topk_prob"] = true;
  json["moe_intermediate_size"] = c.ffn.d_expert;
  json["shared_expert_intermediate_size"] = c.ffn.d_shared;
  json["hc_count"] = c.streams.n_streams;
  json["hc_lowrank"] = c.streams.low_rank;
  json["indexer_n_heads"] = c.indexer.n_heads;
  json["indexer_kv_heads"] = 1;
  json["indexer_head_dim"] = c.indexer.head_dim;
  json["indexer_budget"] = c.indexer.top_k_cells;
  json["indexer_compress_ratio"] = c.indexer.block_cells;
  json["output_gate_type"] = "sigmoid";
}

void set_ngrams(const NgramConfig& n, Json& json) {
  if (n.block < 0) return;
  json["ple_layer_ids"] = {n.block + 1};  // the list counts from 1
  json["ple_embed_dim"] = n.width();
  json["ple_conv_kernel_size"] = n.conv_kernel;
  json["ngram_size"] = n.ngram_size;
  json["heads_per_ngram"] = n.heads_per_ngram;
  // The first head's size is the first prime from the base on, so the base may as well be it. Multipliers are
  // in the checkpoint, whatever seed made them.
  json["ngram_vocab_size_base"] = n.head_sizes[0];
  json["make_ngram_vocab_size_divisible_by"] = 128;
  json["eos_token_id"] = n.eos;
}

}  // namespace

std::string config_json(const ModelConfig& c) {
  Json json;
  const bool is_qwen4exp = c.family == Family::kQwen4Exp;
  const char* const names[][2] = {{"Qwen2ForCausalLM", "qwen2"},
                                  {"Qwen3ForCausalLM", "qwen3"},
                                  {"Qwen4ExpForCausalLM", "qwen4_exp_text"}};
  const auto& name = names[is_qwen4exp ? 2 : c.family == Family::kQwen3 ? 1 : 0];
  json["architectures"] = {name[0]};
  json["model_type"] = name[1];
  json["vocab_size"] = c.n_vocab;
  json["hidden_size"] = c.d_model;
  json["num_hidden_layers"] = c.n_blocks;
  json["num_attention_heads"] = c.attention.shape.n_heads;
  json["num_key_value_heads"] = c.attention.shape.n_kv_heads;
  json["head_dim"] = c.attention.shape.head_dim;
  if (!is_qwen4exp) json["intermediate_size"] = c.ffn.d_ffn;
  json["rms_norm_eps"] = shortest(c.rms_eps);
  json["max_position_embeddings"] = c.context_length;
  json["tie_word_embeddings"] = c.tied_embeddings;
  json["attention_bias"] = c.attention.bias;
  json["hidden_act"] = "silu";
  Json& rope = json["rope_parameters"];
  rope["rope_type"] = "default";
  rope["rope_theta"] = c.attention.rope_theta;
  if (is_qwen4exp) {
    rope["partial_rotary_factor"] =
        static_cast<double>(c.attention.n_rot) / static_cast<double>(c.attention.shape.head_dim);
    // Position components of text are all the same, whatever pairs they have.
    const int pairs = c.attention.n_rot / 2, quarter = pairs / 4;
    rope["mrope_section"] = {pairs - 2 * quarter, quarter, quarter};
    rope["mrope_interleaved"] = true;
    set_hybrid(c, json);
    set_ngrams(c.ngram, json);
    json["mtp_num_hidden_layers"] = c.n_mtp_blocks;
    json["mtp_use_dedicated_embeddings"] = false;
  }
  json["dtype"] = "float32";
  return json.dump(1) + "\n";
}

Result<ModelConfig> model_config(const convert::CheckpointConfig& config, convert::Checkpoint& checkpoint) {
  convert::NgramHash hash;
  if (config.ngram.block >= 0) hash = TRY(convert::read_ngram_hash(checkpoint, config));
  const GgufMetadata metadata = convert::model_metadata(
      config, hash, checkpoint.has_any("mtp.") ? convert::HeadBlock::kIncluded : convert::HeadBlock::kAbsent);
  return ModelConfig::from_metadata(metadata, static_cast<int>(config.n_vocab),
                                    config.tied_embeddings || !checkpoint.has("lm_head.weight"));
}

}  // namespace forebay::train
