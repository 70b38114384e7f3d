/// What a model is made of, read from GGUF metadata and checked once. Everything downstream takes sizes from
/// here, never from file keys.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "gguf/gguf.h"
#include "kernels/attention.h"
#include "kernels/gated_delta.h"
#include "kernels/rope.h"

namespace forebay {

enum class Family { kLlama, kQwen2, kQwen3, kQwen3Moe, kQwen3Next, kQwen35Moe, kQwen4Exp };

enum class MixerKind { kAttention, kGatedDelta };

struct AttentionConfig {
  AttentionShape shape;
  int n_rot = 0;
  double rope_theta = 0;
  RopePairs rope_pairs = RopePairs::kHalves;
  bool output_gate = false;  // attn_q carries, per head, the query and a sigmoid gate
  bool qk_norm = false;
  bool bias = false;  // on q, k, v (Qwen2)
};

/// Sparse attention: which cells a query attends to.
struct IndexerConfig {
  int n_heads = 0;
  int head_dim = 0;
  int64_t top_k_cells = 0;
  int block_cells = 0;  // 0: no indexer, dense attention
};

struct GatedDeltaConfig {
  GatedDeltaShape shape;
  int conv_kernel = 0;
  bool sigmoid_gate = false;  // else silu

  int key_width() const { return shape.n_k_heads * shape.k_dim; }
  int value_width() const { return shape.n_v_heads * shape.v_dim; }
  int conv_channels() const { return 2 * key_width() + value_width(); }
};

struct FfnConfig {
  int d_ffn = 0;      // dense width; 0 where every block is a mixture
  int n_experts = 0;  // 0: dense
  int n_used = 0;
  int d_expert = 0;
  int d_shared = 0;  // 0: no shared expert
  float weights_scale = 1.0f;
};

struct HyperConnectionConfig {
  int n_streams = 1;  // 1: ordinary residual
  int low_rank = 0;
};

/// Hashed n-gram embedding, injected at one block.
struct NgramConfig {
  int block = -1;  // -1: none
  int ngram_size = 0;
  int heads_per_ngram = 0;
  int row_width = 0;
  int conv_kernel = 0;
  int64_t eos = 0;
  std::vector<uint64_t> multipliers;   // ngram_size
  std::vector<uint64_t> head_sizes;    // heads
  std::vector<uint64_t> head_offsets;  // heads

  int n_heads() const { return (ngram_size - 1) * heads_per_ngram; }
  int width() const { return n_heads() * row_width; }
  int history_rows() const { return (conv_kernel - 1) * ngram_size; }  // dilation = ngram_size
};

struct ModelConfig {
  Family family = Family::kQwen4Exp;
  std::string architecture;
  std::string name;
  int n_blocks = 0;      // trunk
  int n_mtp_blocks = 0;  // in this file, 0 or 1
  int d_model = 0;
  int n_vocab = 0;
  bool tied_embeddings = false;  // the output head is the embedding
  int64_t context_length = 0;
  float rms_eps = 1e-6f;
  std::vector<MixerKind> mixers;  // trunk blocks
  AttentionConfig attention;
  IndexerConfig indexer;
  std::vector<int> block_cells;  // per trunk block: cells per index block, 0 = dense
  GatedDeltaConfig gated_delta;
  FfnConfig ffn;
  HyperConnectionConfig streams;
  NgramConfig ngram;

  /// Width of the residual between blocks.
  int wide() const { return streams.n_streams * d_model; }
  bool has_mixer(MixerKind kind) const;

  /// Errors: kUnsupported for an architecture this version does not run (the known ones are listed),
  /// kNotFound and kCorrupt naming the key.
  static Result<ModelConfig> from_gguf(const GgufFile& file);
  /// The same without the tensors, which say how many tokens there are and whether they have a matrix of
  /// their own at the output.
  static Result<ModelConfig> from_metadata(const GgufMetadata& metadata, int n_vocab, bool tied_embeddings);
  /// Checks that a separate draft-head file belongs to this trunk: architecture, width, block number.
  Result<void> check_draft_head(const GgufFile& head) const;
};

/// "qwen4exp", ...: the architectures from_gguf accepts.
std::vector<std::string> known_architectures();

}  // namespace forebay
