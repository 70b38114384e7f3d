/// What a tensor of a model file is to memory, by its name alone.
#pragma once

#include <cstdint>
#include <vector>

#include "gguf/gguf.h"
#include "model/config.h"

namespace forebay {

enum class MemoryRole : uint8_t {
  kTrunk,       // read whole for every token
  kEmbedding,   // the token embeddings where the head has a matrix of its own: a row per token
  kNgramTable,  // a few rows per token
  kExperts,     // some experts per token
  kUnread,      // the draft head attends densely: its index tensors
};

struct TensorUse {
  MemoryRole role = MemoryRole::kTrunk;
  int block = -1;      // -1: in none
  bool draft = false;  // of the draft head
};

/// `own_head`: the file has an output.weight.
TensorUse use_of(const TensorInfo& tensor, int n_blocks, bool own_head);

/// What every token reads whole, of the trunk and of the draft head when the configuration has one: in
/// `draft_file`, or in `file` where that is null. Pointers into the files.
struct TrunkTensors {
  std::vector<const TensorInfo*> trunk, draft;
};
TrunkTensors trunk_tensors(const ModelConfig& config, const GgufFile& file, const GgufFile* draft_file);

}  // namespace forebay
