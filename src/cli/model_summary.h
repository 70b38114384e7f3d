/// What a GGUF file holds, added up. Made from the container alone, so that it also describes models that
/// this version does not run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "model/state.h"

namespace forebay::cli {

/// What a tensor is to the memory it needs.
enum class TensorUse {
  kTrunk,   // read for every token
  kExpert,  // read when chosen
  kTable,   // a row or a few per token
  kDraft,   // the draft head, experts included
};

struct Share {
  uint64_t n_tensors = 0;
  uint64_t n_weights = 0;
  uint64_t bytes = 0;

  void add(const TensorInfo& tensor);
};

struct BlockExperts {
  uint64_t n_experts = 0;
  uint64_t bytes_per_expert = 0;  // all its planes
  uint64_t weights_per_expert = 0;
};

struct ModelSummary {
  std::string architecture;  // empty when the file does not say
  std::string name;
  std::map<DType, Share> by_type;
  std::map<TensorUse, Share> by_use;
  Share all;
  uint64_t n_experts_used = 0;               // of the experts of a block, per token; 0: unknown or none
  std::map<uint64_t, BlockExperts> experts;  // by block, draft head included
  /// Weights multiplied for one token, draft head left out: the trunk and the experts used.
  uint64_t n_active = 0;
  uint64_t active_expert_bytes = 0;
  /// What a sequence costs with `kv`, as forebay run has it; empty with the reason when this version cannot
  /// run the model.
  KvType kv = KvType::kF32;
  std::optional<StateSize> state;
  std::optional<StateSize> state_with_draft;
  std::string state_unknown;
  uint64_t context_length = 0;  // trained; 0: unknown
};

ModelSummary summarise(const GgufFile& file);

}  // namespace forebay::cli
