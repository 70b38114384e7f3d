#include "convert/checkpoint_config.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace forebay::convert {
namespace {

using Json = nlohmann::json;

struct ModelType {
  std::string_view model_type;
  Family family;
  std::string_view architecture;
};

constexpr ModelType kModelTypes[] = {
    {"llama", Family::kLlama, "llama"},
    {"qwen2", Family::kQwen2, "qwen2"},
    {"qwen3", Family::kQwen3, "qwen3"},
    {"qwen3_moe", Family::kQwen3Moe, "qwen3moe"},
    {"qwen3_next", Family::kQwen3Next, "qwen3next"},
    {"qwen3_5_moe", Family::kQwen35Moe, "qwen35moe"},
    {"qwen3_5_moe_text", Family::kQwen35Moe, "qwen35moe"},
    {"qwen4_exp", Family::kQwen4Exp, "qwen4exp"},
    {"qwen4_exp_text", Family::kQwen4Exp, "qwen4exp"},
};

constexpr uint64_t kMaxWidth = 1 << 20;
constexpr uint64_t kMaxRows = 1ull << 40;

Error unsupported(const JsonObject& json, std::string_view key, std::string_view wanted) {
  return json.wrong(key, wanted, Code::kUnsupported);
}

/// The members of text_config over those around it, which hold what both parts share.
JsonObject text_part(const JsonObject& root, const Json& text) {
  Json merged = Json::object();
  for (const char* shared : {"tie_word_embeddings", "quantization_config", "eos_token_id", "bos_token_id",
                             "pad_token_id", "image_token_id"})
    if (const Json* value = root.find(shared)) merged[shared] = *value;
  for (const auto& [key, value] : text.items())
    if (!value.is_null() || !merged.contains(key)) merged[key] = value;
  return JsonObject(root.where(), std::move(merged));
}

/// Refuses what config.json can switch and the engine has no code for.
Result<void> check_variations(const JsonObject& json, const CheckpointConfig& c) {
  if (TRY(json.string_or("hidden_act", "silu")) != "silu") return unsupported(json, "hidden_act", "silu");
  if (TRY(json.boolean_or("use_sliding_window", false)))
    return unsupported(json, "use_sliding_window", "false");
  for (const char* bias : {"attention_bias", "mlp_bias", "qkv_bias"})
    if (TRY(json.boolean_or(bias, false)) && c.family != Family::kQwen2)
      return unsupported(json, bias, "false");
  if (!c.has_experts()) return {};
  // The engine renormalises the chosen experts' weights and has a mixture in every block.
  if (!TRY(json.boolean_or("norm_topk_prob", true))) return unsupported(json, "norm_topk_prob", "true");
  if (TRY(json.integer_or("decoder_sparse_step", 1, 0, kMaxWidth)) != 1)
    return unsupported(json, "decoder_sparse_step", "1");
  if (!TRY(json.integers("mlp_only_layers")).empty()) return unsupported(json, "mlp_only_layers", "none");
  if (c.family == Family::kQwen4Exp) {
    if (TRY(json.string_or("output_gate_type", "sigmoid")) != "sigmoid")
      return unsupported(json, "output_gate_type", "sigmoid");
    if (TRY(json.integer_or("indexer_kv_heads", 1, 0, kMaxWidth)) != 1)
      return unsupported(json, "indexer_kv_heads", "1");
  }
  return {};
}

Result<void> read_attention(const JsonObject& json, CheckpointConfig& c) {
  AttentionDims& a = c.attention;
  a.n_heads = TRY(json.integer("num_attention_heads", 1, kMaxWidth));
  a.n_kv_heads = TRY(json.integer_or("num_key_value_heads", a.n_heads, 1, a.n_heads));
  a.head_dim = TRY(json.integer_or("head_dim", c.d_model / a.n_heads, 2, kMaxWidth));
  if (a.n_heads % a.n_kv_heads != 0)
    return json.wrong("num_key_value_heads", fmt::format("a divisor of {} heads", a.n_heads));
  a.bias = c.family == Family::kQwen2;
  return {};
}

/// Rope values live in rope_parameters (new) or beside rope_scaling and rope_theta (old).
Result<void> read_rope(const JsonObject& json, CheckpointConfig& c) {
  JsonObject rope = json;
  if (const auto parameters = json.object("rope_parameters")) {
    rope = *parameters;
    // Families with two kinds of attention give one set for each.
    if (const auto full = rope.object("full_attention")) rope = *full;
  }
  const JsonObject scaling = json.object("rope_scaling").value_or(rope);

  RopeConfig& r = c.rope;
  r.theta = TRY(rope.number_or("rope_theta", TRY(json.number_or("rope_theta", 10000))));
  if (!(r.theta > 1)) return rope.wrong("rope_theta", "a number above 1");
  const double default_factor = c.is_hybrid() ? 0.25 : 1;
  const double factor = TRY(
      rope.number_or("partial_rotary_factor", TRY(json.number_or("partial_rotary_factor", default_factor))));
  const double n_rot = static_cast<double>(c.attention.head_dim) * factor;
  if (!(factor > 0 && factor <= 1) || n_rot < 2 || static_cast<uint64_t>(n_rot) % 2 != 0)
    return rope.wrong(
        "partial_rotary_factor",
        fmt::format("above 0, at most 1, and an even part of {} dimensions", c.attention.head_dim));
  r.n_rot = static_cast<uint64_t>(n_rot);

  if (c.family == Family::kQwen35Moe || c.family == Family::kQwen4Exp) {
    r.sections = TRY(scaling.integers("mrope_section"));
    if (r.sections.empty()) r.sections = TRY(rope.integers("mrope_section"));
    if (r.sections.empty()) r.sections = {11, 11, 10};  // the published value
    if (r.sections.size() != 3 || std::accumulate(r.sections.begin(), r.sections.end(), 0ull) != r.n_rot / 2)
      return scaling.wrong("mrope_section", fmt::format("three numbers that sum to {}", r.n_rot / 2));
  }

  std::string kind = TRY(scaling.string_or("rope_type", ""));
  if (kind.empty()) kind = TRY(scaling.string_or("type", "default"));
  if (kind == "default" || kind == "mrope") return {};
  if (kind != "yarn" && kind != "linear") return unsupported(scaling, "rope_type", "default, yarn or linear");
  r.scaling = kind;
  r.scaling_factor = TRY(scaling.number_or("factor", 0));
  if (!(r.scaling_factor >= 1)) return scaling.wrong("factor", "a number of at least 1");
  r.original_context = TRY(scaling.integer_or("original_max_position_embeddings", 0, 1, kMaxRows));
  return {};
}

Result<void> read_layer_kinds(const JsonObject& json, CheckpointConfig& c) {
  c.recurrent.assign(c.n_blocks, false);
  if (!c.is_hybrid()) return {};
  const std::vector<std::string> kinds = TRY(json.strings("layer_types"));
  const uint64_t interval = TRY(json.integer_or("full_attention_interval", 4, 1, kMaxWidth));
  if (!kinds.empty() && kinds.size() != c.n_blocks)
    return json.wrong("layer_types", fmt::format("{} entries", c.n_blocks));
  constexpr std::string_view kAttention[] = {"full_attention", "sparse_attention", "qwen_sparse_attention"};
  for (uint64_t i = 0; i < c.n_blocks; ++i) {
    if (kinds.empty())
      c.recurrent[i] = (i + 1) % interval != 0;
    else if (kinds[i] == "linear_attention")
      c.recurrent[i] = true;
    else if (std::ranges::find(kAttention, kinds[i]) == std::end(kAttention))
      return Error{Code::kUnsupported,
                   fmt::format("{}: layer_types[{}] is {}, wanted linear_attention or one of {}",
                               json.where(), i, kinds[i], fmt::join(kAttention, ", "))};
  }
  // The interval that explains the layers: the place of the first attention block, or the configured one.
  const auto first = std::ranges::find(c.recurrent, false);
  const uint64_t guess =
      first == c.recurrent.end() ? interval : static_cast<uint64_t>(first - c.recurrent.begin()) + 1;
  bool is_regular = true;
  for (uint64_t i = 0; i < c.n_blocks; ++i) is_regular &= c.recurrent[i] == ((i + 1) % guess != 0);
  c.attention_interval = is_regular ? guess : 0;
  return {};
}

Result<void> read_gated_delta(const JsonObject& json, CheckpointConfig& c) {
  GatedDeltaDims& g = c.gated_delta;
  g.n_k_heads = TRY(json.integer("linear_num_key_heads", 1, kMaxWidth));
  g.n_v_heads = TRY(json.integer("linear_num_value_heads", 1, kMaxWidth));
  g.k_dim = TRY(json.integer("linear_key_head_dim", 1, kMaxWidth));
  g.v_dim = TRY(json.integer("linear_value_head_dim", 1, kMaxWidth));
  g.conv_kernel = TRY(json.integer("linear_conv_kernel_dim", 2, 64));
  if (g.n_v_heads % g.n_k_heads != 0)
    return json.wrong("linear_num_value_heads", fmt::format("a multiple of {} key heads", g.n_k_heads));
  return {};
}

Result<void> read_experts(const JsonObject& json, CheckpointConfig& c) {
  ExpertDims& e = c.experts;
  const bool local = !json.has("num_experts") && json.has("num_local_experts");
  e.n_experts = TRY(json.integer(local ? "num_local_experts" : "num_experts", 1, 1 << 16));
  e.n_used = TRY(json.integer("num_experts_per_tok", 1, e.n_experts));
  e.width = TRY(json.integer("moe_intermediate_size", 1, kMaxWidth));
  if (c.is_hybrid()) e.shared_width = TRY(json.integer("shared_expert_intermediate_size", 1, kMaxWidth));
  return {};
}

Result<void> read_ngram(const JsonObject& json, CheckpointConfig& c) {
  const std::vector<uint64_t> layers = TRY(json.integers("ple_layer_ids"));
  if (layers.empty()) return {};
  if (layers.size() > 1) return unsupported(json, "ple_layer_ids", "one layer");
  // The list counts from 1.
  if (layers[0] < 1 || layers[0] > c.n_blocks)
    return json.wrong("ple_layer_ids", fmt::format("one layer from 1 to {}", c.n_blocks));
  NgramConfig& n = c.ngram;
  n.block = static_cast<int64_t>(layers[0]) - 1;
  if (!c.recurrent[n.block]) return unsupported(json, "ple_layer_ids", "a linear_attention layer");
  n.ngram_size = TRY(json.integer("ngram_size", 2, 8));
  n.heads_per_ngram = TRY(json.integer("heads_per_ngram", 1, 256));
  n.conv_kernel = TRY(json.integer("ple_conv_kernel_size", 2, 64));
  n.embedding_width = TRY(json.integer("ple_embed_dim", 1, kMaxWidth));
  n.vocab_base = TRY(json.integer("ngram_vocab_size_base", 2, 1ull << 32));
  n.row_multiple = TRY(json.integer_or("make_ngram_vocab_size_divisible_by", 128, 1, kMaxWidth));
  n.seed = TRY(json.integer_or("seed", 1234, 0, UINT64_MAX));
  if (n.embedding_width % n.n_heads() != 0)
    return json.wrong("ple_embed_dim", fmt::format("a multiple of {} hash heads", n.n_heads()));
  // The id that cuts n-grams: the text model's own eos, which need not be the chat's. Of a list, the first.
  const std::vector<uint64_t> eos = TRY(json.integers("eos_token_id"));
  if (eos.empty()) return json.wrong("eos_token_id", "the id that ends n-grams", Code::kNotFound);
  if (eos[0] >= c.n_vocab) return json.wrong("eos_token_id", fmt::format("an id below {}", c.n_vocab));
  n.eos = eos[0];
  if (json.has("image_token_id")) n.image_token = TRY(json.integer("image_token_id", 0, c.n_vocab - 1));
  return {};
}

Result<void> read_streams(const JsonObject& json, CheckpointConfig& c) {
  c.streams.n_streams = TRY(json.integer("hc_count", 1, 64));
  c.streams.low_rank = TRY(json.integer("hc_lowrank", 1, kMaxWidth));
  c.indexer.n_heads = TRY(json.integer("indexer_n_heads", 1, 256));
  c.indexer.head_dim = TRY(json.integer("indexer_head_dim", 2, kMaxWidth));
  c.indexer.budget_tokens = TRY(json.integer("indexer_budget", 1, 1 << 24));
  c.indexer.block_tokens = TRY(json.integer_or("indexer_compress_ratio", 4, 1, 64));
  return {};
}

Result<void> read_fp8(const JsonObject& json, CheckpointConfig& c) {
  const auto quantization = json.object("quantization_config");
  if (!quantization) return {};
  if (TRY(quantization->string_or("quant_method", "")) != "fp8")
    return unsupported(*quantization, "quant_method", "fp8 or none");
  std::vector<uint64_t> block = TRY(quantization->integers("weight_block_size"));
  if (block.empty()) block = {128, 128};
  if (block.size() != 2 || block[0] == 0 || block[1] == 0)
    return quantization->wrong("weight_block_size", "two sizes above 0");
  c.fp8_block_rows = block[0];
  c.fp8_block_columns = block[1];
  return {};
}

}  // namespace

Result<CheckpointConfig> read_checkpoint_config(const JsonObject& root) {
  const auto text = root.object("text_config");
  CheckpointConfig c;
  c.json = text ? text_part(root, *root.find("text_config")) : root;
  const JsonObject& json = c.json;

  std::string model_type = TRY(json.string_or("model_type", ""));
  if (model_type.empty()) model_type = TRY(root.string_or("model_type", ""));
  const auto* known = std::ranges::find(kModelTypes, model_type, &ModelType::model_type);
  if (known == std::end(kModelTypes)) {
    std::vector<std::string_view> names;
    for (const ModelType& type : kModelTypes) names.push_back(type.model_type);
    return Error{Code::kUnsupported, fmt::format("{}: model_type is '{}', wanted one of {}", root.where(),
                                                 model_type, fmt::join(names, ", "))};
  }
  c.family = known->family;
  c.architecture = known->architecture;

  c.n_blocks = TRY(json.integer("num_hidden_layers", 1, 4095));
  c.d_model = TRY(json.integer("hidden_size", 1, kMaxWidth));
  c.n_vocab = TRY(json.integer("vocab_size", 1, 1 << 30));
  c.context_length = TRY(json.integer("max_position_embeddings", 1, 1ull << 32));
  c.rms_eps = TRY(json.number_or("rms_norm_eps", 1e-6));
  c.tied_embeddings = TRY(json.boolean_or("tie_word_embeddings", false));
  TRY(read_attention(json, c));
  TRY(read_rope(json, c));
  TRY(read_layer_kinds(json, c));
  if (c.is_hybrid()) TRY(read_gated_delta(json, c));
  if (c.family >= Family::kQwen3Moe)
    TRY(read_experts(json, c));
  else
    c.d_ffn = TRY(json.integer("intermediate_size", 1, kMaxWidth));
  if (c.family == Family::kQwen4Exp) {
    TRY(read_streams(json, c));
    TRY(read_ngram(json, c));
  }
  TRY(read_fp8(json, c));
  TRY(check_variations(json, c));
  return c;
}

}  // namespace forebay::convert
