/// What a model's tensors are to memory, added up from the file's header alone: no weight is read, so the
/// file may be far larger than memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "gguf/gguf.h"
#include "model/config.h"

namespace forebay {

/// The experts of one block, all alike.
struct ExpertFootprint {
  int64_t n_experts = 0;
  uint64_t bytes = 0;       // of one: gate, up and down
  uint64_t slot_bytes = 0;  // of one in memory: each plane with the pages around it
};

/// In bytes.
struct ModelFootprint {
  std::string name;
  ModelConfig config;
  bool with_draft = false;  // the draft head is loaded
  uint64_t file_bytes = 0;

  uint64_t trunk_bytes = 0;       // all tensors but experts, n-gram table and draft head
  uint64_t trunk_read_bytes = 0;  // of them, per token: of an embedding that is not also the head, one row
  uint64_t embedding_bytes = 0;   // of them, read by rows: 0 where the head reads the embeddings too
  uint64_t trunk_copy_bytes = 0;  // a copy of the rest, in whole pages
  uint64_t draft_copy_bytes = 0;  // the same of the draft head
  uint64_t draft_bytes = 0;       // of the draft head, without its experts; 0 unless it is loaded
  uint64_t copied_bytes = 0;      // small vectors that the loader keeps a second time, as f32
  uint64_t ngram_bytes = 0;       // of the table, which stays in the file
  uint64_t text_bytes = 0;        // of vocabulary, merges and template in memory, estimated
  std::vector<ExpertFootprint> experts;  // per trunk block, then the draft head's; empty for dense models

  // The types that most bytes have: how fast weights can be computed on depends on them.
  DType trunk_type = DType::kF32;
  DType expert_type = DType::kF32;

  /// Slots of every expert: from here on a larger arena serves nothing.
  uint64_t all_slots_bytes() const;
  /// Of the experts that one token needs in all trunk blocks.
  uint64_t expert_bytes_per_token() const;

  /// `draft_file` is a separate draft head, or null; with_draft loads it, or the head inside `file`.
  /// Errors: those of ModelConfig::from_gguf and check_draft_head.
  static Result<ModelFootprint> from_gguf(const GgufFile& file, const GgufFile* draft_file, bool with_draft);
  /// A model that is not there: its configuration and its tensors' names, types and shapes.
  static ModelFootprint from_tensors(const ModelConfig& config, std::span<const TensorInfo> tensors,
                                     bool with_draft);
};

/// In memory, of the strings of a vocabulary and all that is made of them; an estimate.
uint64_t text_bytes_of(const GgufMetadata& metadata);

/// Memory for planes of these sizes, each read in whole pages from wherever it begins.
uint64_t slot_bytes(std::span<const uint64_t> plane_bytes);

}  // namespace forebay
