#include "model/config.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace forebay {
namespace {

struct FamilyName {
  const char* architecture;
  Family family;
};
constexpr FamilyName kFamilies[] = {
    {"llama", Family::kLlama},       {"qwen2", Family::kQwen2},         {"qwen3", Family::kQwen3},
    {"qwen3moe", Family::kQwen3Moe}, {"qwen3next", Family::kQwen3Next}, {"qwen35moe", Family::kQwen35Moe},
    {"qwen4exp", Family::kQwen4Exp},
};

bool is_hybrid(Family f) {
  return f == Family::kQwen3Next || f == Family::kQwen35Moe || f == Family::kQwen4Exp;
}
bool is_mixture(Family f) {
  return is_hybrid(f) || f == Family::kQwen3Moe;
}

/// Metadata of one architecture: keys are prefixed, integers range-checked.
class Keys {
 public:
  Keys(const GgufMetadata& metadata, std::string architecture)
      : metadata_(metadata), prefix_(std::move(architecture) + ".") {}

  std::string key(std::string_view suffix) const { return prefix_ + std::string(suffix); }
  bool has(std::string_view suffix) const { return metadata_.has(key(suffix)); }
  const GgufMetadata& metadata() const { return metadata_; }

  Result<int64_t> integer(std::string_view suffix, int64_t low, int64_t high) const {
    const uint64_t value = TRY(metadata_.get_uint(key(suffix)));
    return checked(suffix, value, low, high);
  }
  Result<int64_t> integer_or(std::string_view suffix, int64_t fallback, int64_t low, int64_t high) const {
    if (!has(suffix)) return fallback;
    return integer(suffix, low, high);
  }
  /// A value that some writers store per block: all entries must agree.
  Result<int64_t> uniform(std::string_view suffix, int64_t low, int64_t high) const {
    const std::vector<uint64_t> values = TRY(metadata_.get_uints(key(suffix)));
    if (values.empty()) return Error{Code::kCorrupt, fmt::format("{}: an empty array", key(suffix))};
    for (uint64_t v : values)
      if (v != values[0])
        return Error{Code::kUnsupported,
                     fmt::format("{}: blocks differ ({} and {}); one value for all is supported", key(suffix),
                                 values[0], v)};
    return checked(suffix, values[0], low, high);
  }

 private:
  Result<int64_t> checked(std::string_view suffix, uint64_t value, int64_t low, int64_t high) const {
    if (value < static_cast<uint64_t>(low) || value > static_cast<uint64_t>(high))
      return Error{Code::kCorrupt, fmt::format("{}: {}, expected {} to {}", key(suffix), value, low, high)};
    return static_cast<int64_t>(value);
  }

  const GgufMetadata& metadata_;
  std::string prefix_;
};

constexpr int64_t kMaxWidth = 1 << 20;

Result<void> read_attention(const Keys& keys, const ModelConfig& c, AttentionConfig& a) {
  AttentionShape& shape = a.shape;
  shape.n_heads = static_cast<int>(TRY(keys.uniform("attention.head_count", 1, 4096)));
  shape.n_kv_heads = keys.has("attention.head_count_kv")
                         ? static_cast<int>(TRY(keys.uniform("attention.head_count_kv", 1, 4096)))
                         : shape.n_heads;
  if (shape.n_heads % shape.n_kv_heads != 0)
    return Error{Code::kCorrupt,
                 fmt::format("{}: {} does not divide the {} query heads", keys.key("attention.head_count_kv"),
                             shape.n_kv_heads, shape.n_heads)};
  shape.head_dim =
      static_cast<int>(TRY(keys.integer_or("attention.key_length", c.d_model / shape.n_heads, 2, 4096)));
  const int64_t value_dim = TRY(keys.integer_or("attention.value_length", shape.head_dim, 2, 4096));
  if (value_dim != shape.head_dim)
    return Error{Code::kUnsupported,
                 fmt::format("{}: {} differs from key_length {}", keys.key("attention.value_length"),
                             value_dim, shape.head_dim)};
  shape.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));

  a.n_rot = static_cast<int>(TRY(keys.integer_or("rope.dimension_count", shape.head_dim, 2, shape.head_dim)));
  if (a.n_rot % 2 != 0)
    return Error{Code::kCorrupt, fmt::format("{}: {} is odd", keys.key("rope.dimension_count"), a.n_rot)};
  a.rope_theta = TRY(keys.metadata().get_float_or(keys.key("rope.freq_base"), 10000.0));
  if (!(a.rope_theta > 1.0))
    return Error{Code::kCorrupt,
                 fmt::format("{}: {}, expected above 1", keys.key("rope.freq_base"), a.rope_theta)};
  const std::string scaling = TRY(keys.metadata().get_string_or(keys.key("rope.scaling.type"), "none"));
  if (scaling != "none" && !scaling.empty())
    return Error{Code::kUnsupported, fmt::format("{}: {}, only unscaled rope is supported",
                                                 keys.key("rope.scaling.type"), scaling)};
  a.rope_pairs = c.family == Family::kLlama ? RopePairs::kAdjacent : RopePairs::kHalves;
  a.output_gate = is_hybrid(c.family);
  a.qk_norm = c.family != Family::kLlama && c.family != Family::kQwen2;
  a.bias = c.family == Family::kQwen2;
  return {};
}

Result<void> read_gated_delta(const Keys& keys, Family family, GatedDeltaConfig& g) {
  g.conv_kernel = static_cast<int>(TRY(keys.integer("ssm.conv_kernel", 2, 16)));
  const int dim = static_cast<int>(TRY(keys.integer("ssm.state_size", 1, 4096)));
  g.shape.k_dim = dim;
  g.shape.n_k_heads = static_cast<int>(TRY(keys.integer("ssm.group_count", 1, 4096)));
  g.shape.n_v_heads = static_cast<int>(TRY(keys.integer("ssm.time_step_rank", 1, 4096)));
  const int64_t inner = TRY(keys.integer("ssm.inner_size", 1, kMaxWidth));
  if (g.shape.n_v_heads % g.shape.n_k_heads != 0)
    return Error{Code::kCorrupt,
                 fmt::format("{}: {} is not a multiple of group_count {}", keys.key("ssm.time_step_rank"),
                             g.shape.n_v_heads, g.shape.n_k_heads)};
  if (inner % g.shape.n_v_heads != 0)
    return Error{Code::kCorrupt, fmt::format("{}: {} is not a multiple of time_step_rank {}",
                                             keys.key("ssm.inner_size"), inner, g.shape.n_v_heads)};
  g.shape.v_dim = static_cast<int>(inner / g.shape.n_v_heads);
  g.shape.pairing = family == Family::kQwen3Next ? HeadPairing::kGrouped : HeadPairing::kTiled;
  g.sigmoid_gate = family == Family::kQwen4Exp;
  return {};
}

Result<void> read_ffn(const Keys& keys, const ModelConfig& c, FfnConfig& f) {
  if (!is_mixture(c.family)) {
    f.d_ffn = static_cast<int>(TRY(keys.uniform("feed_forward_length", 1, kMaxWidth)));
    return {};
  }
  f.n_experts = static_cast<int>(TRY(keys.integer("expert_count", 1, 1 << 16)));
  f.n_used = static_cast<int>(TRY(keys.integer("expert_used_count", 1, std::min(f.n_experts, 64))));
  if (keys.has("expert_feed_forward_length"))
    f.d_expert = static_cast<int>(TRY(keys.uniform("expert_feed_forward_length", 1, kMaxWidth)));
  else  // old qwen3moe files
    f.d_expert = static_cast<int>(TRY(keys.uniform("feed_forward_length", 1, kMaxWidth)) / f.n_used);
  if (is_hybrid(c.family))
    f.d_shared = static_cast<int>(TRY(keys.uniform("expert_shared_feed_forward_length", 1, kMaxWidth)));
  const double scale = TRY(keys.metadata().get_float_or(keys.key("expert_weights_scale"), 1.0));
  f.weights_scale = scale == 0.0 ? 1.0f : static_cast<float>(scale);
  return {};
}

Result<void> read_mixers(const Keys& keys, ModelConfig& c) {
  c.mixers.assign(c.n_blocks, MixerKind::kAttention);
  if (!is_hybrid(c.family)) return {};
  if (keys.has("attention.recurrent_layers")) {
    const std::vector<int64_t> recurrent =
        TRY(keys.metadata().get_ints(keys.key("attention.recurrent_layers")));
    if (static_cast<int>(recurrent.size()) < c.n_blocks)
      return Error{Code::kCorrupt,
                   fmt::format("{}: {} entries for {} blocks", keys.key("attention.recurrent_layers"),
                               recurrent.size(), c.n_blocks)};
    for (int i = 0; i < c.n_blocks; ++i)
      if (recurrent[i] != 0) c.mixers[i] = MixerKind::kGatedDelta;
    return {};
  }
  const int64_t interval = TRY(keys.integer_or("full_attention_interval", 4, 1, 1 << 16));
  for (int i = 0; i < c.n_blocks; ++i)
    if ((i + 1) % interval != 0) c.mixers[i] = MixerKind::kGatedDelta;
  return {};
}

Result<void> read_indexer(const Keys& keys, ModelConfig& c) {
  c.block_cells.assign(c.n_blocks, 0);
  if (c.family != Family::kQwen4Exp) return {};
  c.indexer.n_heads = static_cast<int>(TRY(keys.integer("attention.indexer.head_count", 1, 256)));
  c.indexer.head_dim = static_cast<int>(TRY(keys.integer("attention.indexer.key_length", 2, 4096)));
  c.indexer.top_k_cells = TRY(keys.integer("attention.indexer.top_k", 1, 1 << 24));
  const std::vector<uint64_t> ratios = TRY(keys.metadata().get_uints(keys.key("attention.compress_ratios")));
  if (ratios.size() != 1 && static_cast<int>(ratios.size()) < c.n_blocks)
    return Error{Code::kCorrupt,
                 fmt::format("{}: {} entries for {} blocks", keys.key("attention.compress_ratios"),
                             ratios.size(), c.n_blocks)};
  for (int i = 0; i < c.n_blocks; ++i) {
    if (c.mixers[i] != MixerKind::kAttention) continue;
    const uint64_t ratio = ratios.size() == 1 ? ratios[0] : ratios[i];
    if (ratio > 64)
      return Error{Code::kCorrupt, fmt::format("{}[{}]: {}, expected 0 to 64",
                                               keys.key("attention.compress_ratios"), i, ratio)};
    c.block_cells[i] = static_cast<int>(ratio);
    if (ratio != 0) c.indexer.block_cells = static_cast<int>(ratio);
  }
  if (c.attention.n_rot > c.indexer.head_dim)
    return Error{Code::kCorrupt, fmt::format("{}: {}, smaller than the {} rotated dims",
                                             keys.key("attention.indexer.key_length"), c.indexer.head_dim,
                                             c.attention.n_rot)};
  return {};
}

Result<void> read_ngram(const Keys& keys, ModelConfig& c) {
  if (c.family != Family::kQwen4Exp || !keys.has("ple.layers")) return {};
  NgramConfig& n = c.ngram;
  const std::vector<uint64_t> layers = TRY(keys.metadata().get_uints(keys.key("ple.layers")));
  if (layers.empty()) return {};
  if (layers.size() != 1 || layers[0] >= static_cast<uint64_t>(c.n_blocks))
    return Error{Code::kUnsupported,
                 fmt::format("{}: [{}], expected one block below {}", keys.key("ple.layers"),
                             fmt::join(layers, ", "), c.n_blocks)};
  n.block = static_cast<int>(layers[0]);
  n.ngram_size = static_cast<int>(TRY(keys.integer("ple.ngram_size", 2, 8)));
  n.heads_per_ngram = static_cast<int>(TRY(keys.integer("ple.heads_per_ngram", 1, 256)));
  n.conv_kernel = static_cast<int>(TRY(keys.integer("ple.conv_kernel", 2, 16)));
  n.row_width = static_cast<int>(TRY(keys.integer("embedding_length_per_layer_input", 1, kMaxWidth)));
  n.eos = TRY(keys.integer("ple.eos_token_id", 0, c.n_vocab - 1));
  n.multipliers = TRY(keys.metadata().get_uints(keys.key("ple.layer_multipliers")));
  n.head_sizes = TRY(keys.metadata().get_uints(keys.key("ple.head_vocab_sizes")));
  n.head_offsets = TRY(keys.metadata().get_uints(keys.key("ple.head_offsets")));
  if (static_cast<int>(n.multipliers.size()) != n.ngram_size)
    return Error{Code::kCorrupt, fmt::format("{}: {} entries, expected {}", keys.key("ple.layer_multipliers"),
                                             n.multipliers.size(), n.ngram_size)};
  if (static_cast<int>(n.head_sizes.size()) != n.n_heads() || n.head_offsets.size() != n.head_sizes.size())
    return Error{Code::kCorrupt, fmt::format("{}: {} sizes and {} offsets, expected {} of each",
                                             keys.key("ple.head_vocab_sizes"), n.head_sizes.size(),
                                             n.head_offsets.size(), n.n_heads())};
  for (uint64_t size : n.head_sizes)
    if (size == 0)
      return Error{Code::kCorrupt, fmt::format("{}: a head of 0 rows", keys.key("ple.head_vocab_sizes"))};
  return {};
}

}  // namespace

bool ModelConfig::has_mixer(MixerKind kind) const {
  return std::find(mixers.begin(), mixers.end(), kind) != mixers.end();
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  for (const FamilyName& f : kFamilies) names.emplace_back(f.architecture);
  return names;
}

Result<ModelConfig> ModelConfig::from_gguf(const GgufFile& file) {
  // The vocabulary's size is the embedding's: files disagree about keys for it.
  const TensorInfo* embedding = file.find("token_embd.weight");
  // Without an embedding nothing is known of it: that tensor, not a number of tokens, is what the error will
  // name.
  constexpr uint64_t kMostTokens = 1u << 30;
  const uint64_t n_vocab = embedding == nullptr ? kMostTokens : embedding->ne[1];
  if (n_vocab < 1 || n_vocab > kMostTokens)
    return Error{Code::kCorrupt, fmt::format("token_embd.weight: shape {}, expected [width, vocabulary]",
                                             shape_string(*embedding))};
  ModelConfig config =
      TRY(from_metadata(file.metadata(), static_cast<int>(n_vocab), file.find("output.weight") == nullptr));
  if (embedding == nullptr) return Error{Code::kNotFound, "token_embd.weight: missing tensor"};
  return config;
}

Result<ModelConfig> ModelConfig::from_metadata(const GgufMetadata& metadata, int n_vocab,
                                               bool tied_embeddings) {
  ModelConfig c;
  c.n_vocab = n_vocab;
  c.tied_embeddings = tied_embeddings;
  c.architecture = TRY(metadata.get_string("general.architecture"));
  const auto* family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                    [&](const FamilyName& f) { return c.architecture == f.architecture; });
  if (family == std::end(kFamilies))
    return Error{Code::kUnsupported, fmt::format("general.architecture: '{}' is not supported (known: {})",
                                                 c.architecture, fmt::join(known_architectures(), ", "))};
  c.family = family->family;
  c.name = TRY(metadata.get_string_or("general.name", c.architecture));
  const Keys keys(metadata, c.architecture);

  const int64_t n_all = TRY(keys.integer("block_count", 1, 4096));
  c.n_mtp_blocks = static_cast<int>(TRY(keys.integer_or("nextn_predict_layers", 0, 0, 1)));
  c.n_blocks = static_cast<int>(n_all) - c.n_mtp_blocks;
  if (c.n_blocks < 1)
    return Error{Code::kCorrupt, fmt::format("{}: {} blocks, {} of them MTP", keys.key("block_count"), n_all,
                                             c.n_mtp_blocks)};
  c.d_model = static_cast<int>(TRY(keys.integer("embedding_length", 1, kMaxWidth)));
  c.context_length = TRY(keys.integer("context_length", 1, int64_t{1} << 32));
  c.rms_eps = static_cast<float>(TRY(metadata.get_float(keys.key("attention.layer_norm_rms_epsilon"))));

  TRY(read_attention(keys, c, c.attention));
  TRY(read_mixers(keys, c));
  if (is_hybrid(c.family)) TRY(read_gated_delta(keys, c.family, c.gated_delta));
  TRY(read_ffn(keys, c, c.ffn));
  if (c.family == Family::kQwen4Exp) {
    c.streams.n_streams = static_cast<int>(TRY(keys.integer("hyper_connection.count", 1, 64)));
    c.streams.low_rank = static_cast<int>(TRY(keys.integer("hyper_connection.low_rank", 1, kMaxWidth)));
  }
  TRY(read_indexer(keys, c));
  TRY(read_ngram(keys, c));
  return c;
}

Result<void> ModelConfig::check_draft_head(const GgufFile& head) const {
  const GgufMetadata& metadata = head.metadata();
  const std::string seen = TRY(metadata.get_string("general.architecture"));
  if (seen != architecture)
    return Error{Code::kInvalidArgument, fmt::format("{}: architecture '{}', the trunk's is '{}'",
                                                     head.path().string(), seen, architecture)};
  const Keys keys(metadata, architecture);
  if (TRY(keys.integer_or("nextn_predict_layers", 0, 0, 1)) != 1)
    return Error{Code::kInvalidArgument, fmt::format("{}: {} is not 1: not a draft head",
                                                     head.path().string(), keys.key("nextn_predict_layers"))};
  const int64_t blocks = TRY(keys.integer("block_count", 1, 4096));
  const int64_t width = TRY(keys.integer("embedding_length", 1, kMaxWidth));
  if (blocks != n_blocks + 1 || width != d_model)
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: a head for {} blocks of width {}, the trunk has {} of width {}",
                             head.path().string(), blocks - 1, width, n_blocks, d_model)};
  return {};
}

}  // namespace forebay
