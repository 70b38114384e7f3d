/// A model's tensors by role. Matrices are views into the mapped file; small vectors (norms, convolution
/// taps, biases) are f32 copies in an arena owned by the Weights.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/memory_budget.h"
#include "experts/mapped_experts.h"
#include "gguf/gguf.h"
#include "model/config.h"
#include "model/trunk_copy.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace forebay {

/// Reads from and writes to the residual streams around one sub-block.
struct HyperConnectionWeights {
  std::span<const float> norm;  // [H*D]
  MatrixView down;              // H*D -> R
  MatrixView up;                // R -> H*D
  MatrixView inject;            // H*D -> H; empty for final reads
};

struct IndexerWeights {
  MatrixView q, k;
  std::span<const float> q_norm, k_norm;
};

struct AttentionWeights {
  MatrixView q, k, v, output;
  std::span<const float> q_norm, k_norm;          // [head_dim], empty without qk_norm
  std::span<const float> q_bias, k_bias, v_bias;  // empty without bias
  IndexerWeights indexer;                         // empty on dense layers
};

struct GatedDeltaWeights {
  MatrixView qkv, gate, alpha, beta, output;
  MatrixView alpha_beta;        // qwen3next: fused, de-interleaved when run
  std::span<const float> conv;  // [K][channels]: taps by channel, transposed from the file
  std::span<const float> a;     // [n_v_heads], negative
  std::span<const float> dt;    // [n_v_heads]
  std::span<const float> norm;  // [v_dim]
};

struct FfnWeights {
  MatrixView gate, up, down;  // dense
  MatrixView router;          // D -> E
  MatrixView shared_gate, shared_up, shared_down;
  MatrixView shared_router;  // D -> 1
};

struct NgramWeights {
  MatrixView table;  // [rows, row_width]
  MatrixView key, value;
  std::span<const float> norm_key, norm_query, norm_conv;  // [H*D]
  std::span<const float> conv;                             // [K][H*D]
};

struct BlockWeights {
  std::span<const float> mixer_norm, ffn_norm;        // single-stream families
  HyperConnectionWeights mixer_streams, ffn_streams;  // qwen4exp
  std::optional<AttentionWeights> attention;
  std::optional<GatedDeltaWeights> gated_delta;
  std::optional<NgramWeights> ngram;
  FfnWeights ffn;
};

/// The draft head: one block fed with the next token's embedding and the trunk's hidden state.
struct MtpWeights {
  std::span<const float> embedding_norm;  // enorm [D]
  std::span<const float> hidden_norm;     // hnorm [H*D]
  MatrixView project;                     // [2D -> D], embedding columns first
  BlockWeights block;
  HyperConnectionWeights final_streams;  // qwen4exp
  std::span<const float> final_norm;     // qwen35moe
};

class Weights {
 public:
  /// Maps roles to tensors of `trunk` (and of `mtp`, a separate head file, when given), or of `copies` for
  /// those that are there. Both files must outlive the weights. Small f32 tensors are checked to be finite.
  /// Errors name tensor, shape seen and shape wanted.
  static Result<Weights> load(const GgufFile& trunk, const GgufFile* mtp, const ModelConfig& config,
                              MemoryBudget& budget, TrunkCopies copies = {});

  /// What of the files is in memory of our own.
  const TrunkCopies& copies() const { return copies_; }

  MatrixView embedding;
  MatrixView head;
  std::span<const float> final_norm;
  HyperConnectionWeights final_streams;
  std::vector<BlockWeights> blocks;
  std::optional<MtpWeights> mtp;
  /// Per block, the draft head's last; empty for dense models. Where they are read from is an ExpertSource's
  /// business.
  std::vector<ExpertPlanes> experts;

  /// The first tensor with a value that is not finite, by name; empty when there is none. Reads everything:
  /// for the message after a forward pass went wrong.
  static std::string find_non_finite(const GgufFile& file);

 private:
  friend class WeightLoader;
  std::deque<Buffer> owned_;
  TrunkCopies copies_;
};

}  // namespace forebay
