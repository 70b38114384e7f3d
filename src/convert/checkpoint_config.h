/// What a checkpoint's config.json says, in one shape for all families and for old and new spellings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/json_object.h"

namespace forebay::convert {

enum class Family { kLlama, kQwen2, kQwen3, kQwen3Moe, kQwen3Next, kQwen35Moe, kQwen4Exp };

struct AttentionDims {
  uint64_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  bool bias = false;  // on q, k and v
};

struct RopeConfig {
  uint64_t n_rot = 0;  // dimensions of a head that are rotated
  double theta = 0;
  std::vector<uint64_t> sections;  // pairs per position component; empty: ordinary rope
  std::string scaling;             // "yarn", "linear"; empty: none
  double scaling_factor = 1;
  uint64_t original_context = 0;  // 0: not given
};

struct GatedDeltaDims {
  uint64_t n_k_heads = 0, n_v_heads = 0, k_dim = 0, v_dim = 0, conv_kernel = 0;

  uint64_t key_width() const { return n_k_heads * k_dim; }
  uint64_t value_width() const { return n_v_heads * v_dim; }
  uint64_t conv_channels() const { return 2 * key_width() + value_width(); }
};

struct ExpertDims {
  uint64_t n_experts = 0, n_used = 0, width = 0;  // n_experts 0: a dense feed-forward
  uint64_t shared_width = 0;                      // 0: no shared expert
};

struct StreamDims {
  uint64_t n_streams = 1, low_rank = 0;
};

struct IndexerDims {
  uint64_t n_heads = 0, head_dim = 0, budget_tokens = 0, block_tokens = 0;
};

/// The hashed n-gram embedding.
struct NgramConfig {
  int64_t block = -1;  // 0-based; -1: none
  uint64_t ngram_size = 0, heads_per_ngram = 0, conv_kernel = 0, embedding_width = 0;
  uint64_t vocab_base = 0, row_multiple = 0, seed = 0, eos = 0;
  std::optional<uint64_t> image_token;

  uint64_t n_heads() const { return (ngram_size - 1) * heads_per_ngram; }
  uint64_t row_width() const { return embedding_width / n_heads(); }
};

struct CheckpointConfig {
  Family family = Family::kLlama;
  std::string architecture;  // as GGUF calls it
  uint64_t n_blocks = 0, d_model = 0, n_vocab = 0, context_length = 0, d_ffn = 0;
  double rms_eps = 0;
  bool tied_embeddings = false;
  AttentionDims attention;
  RopeConfig rope;
  std::vector<bool> recurrent;      // per block: gated delta rule instead of attention
  uint64_t attention_interval = 0;  // every n-th block is attention; 0: no such rule
  GatedDeltaDims gated_delta;
  ExpertDims experts;
  StreamDims streams;
  IndexerDims indexer;
  NgramConfig ngram;
  uint64_t fp8_block_rows = 0, fp8_block_columns = 0;  // weights per scale; 0: no FP8
  JsonObject json{{}, nlohmann::json::object()};  // the text model's members, with the outer ones below them

  bool is_hybrid() const { return family >= Family::kQwen3Next; }
  bool has_experts() const { return experts.n_experts > 0; }
  /// Norm weights are stored as the difference from one.
  bool norms_are_zero_centred() const { return is_hybrid(); }
  bool has_qk_norm() const { return family >= Family::kQwen3; }
  /// Width of the residual between blocks.
  uint64_t wide() const { return streams.n_streams * d_model; }
};

/// Errors: kUnsupported for a model type that is not known (the known ones are listed) or a variation that
/// the engine does not run; kNotFound and kCorrupt naming the member.
Result<CheckpointConfig> read_checkpoint_config(const JsonObject& config_json);

}  // namespace forebay::convert
