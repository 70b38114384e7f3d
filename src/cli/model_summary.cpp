#include "cli/model_summary.h"

#include <algorithm>
#include <climits>

#include "model/config.h"
#include "model/tensor_role.h"

namespace forebay::cli {
namespace {

class Classifier {
 public:
  Classifier(const GgufFile& file, const std::string& architecture)
      : own_head_(file.find("output.weight") != nullptr) {
    const auto key = [&](std::string_view suffix) {
      return file.metadata().get_uint(architecture + "." + std::string(suffix));
    };
    const Result<uint64_t> n_blocks = key("block_count");
    const Result<uint64_t> n_draft = key("nextn_predict_layers");
    if (n_blocks && n_draft && *n_draft < *n_blocks && *n_blocks <= INT_MAX)
      first_draft_block_ = static_cast<int>(*n_blocks - *n_draft);
  }

  forebay::TensorUse use_of(const TensorInfo& tensor) const {
    return forebay::use_of(tensor, first_draft_block_, own_head_);
  }

 private:
  bool own_head_;
  int first_draft_block_ = INT_MAX;  // none
};

TensorUse shown(const forebay::TensorUse& use) {
  if (use.draft) return TensorUse::kDraft;
  if (use.role == MemoryRole::kExperts) return TensorUse::kExpert;
  const bool by_rows = use.role == MemoryRole::kEmbedding || use.role == MemoryRole::kNgramTable;
  return by_rows ? TensorUse::kTable : TensorUse::kTrunk;
}

void add_state(const GgufFile& file, ModelSummary& summary) {
  const Result<ModelConfig> config = ModelConfig::from_gguf(file);
  if (!config) {
    summary.state_unknown = config.error().message;
    return;
  }
  summary.kv = usual_kv_type(*config);
  summary.state = state_size(*config, /*with_mtp=*/false, summary.kv);
  if (config->n_mtp_blocks > 0) summary.state_with_draft = state_size(*config, /*with_mtp=*/true, summary.kv);
}

}  // namespace

void Share::add(const TensorInfo& tensor) {
  ++n_tensors;
  n_weights += tensor.n_elements();
  bytes += tensor.bytes;
}

ModelSummary summarise(const GgufFile& file) {
  ModelSummary summary;
  const GgufMetadata& metadata = file.metadata();
  if (const Result<std::string> value = metadata.get_string("general.architecture"))
    summary.architecture = *value;
  if (const Result<std::string> value = metadata.get_string("general.name")) summary.name = *value;
  const auto number = [&](std::string_view suffix) {
    const Result<uint64_t> value = metadata.get_uint(summary.architecture + "." + std::string(suffix));
    return value ? *value : 0;
  };
  summary.n_experts_used = number("expert_used_count");
  summary.context_length = number("context_length");

  const Classifier classifier(file, summary.architecture);
  for (const TensorInfo& tensor : file.tensors()) {
    const forebay::TensorUse in_memory = classifier.use_of(tensor);
    const TensorUse use = shown(in_memory);
    summary.all.add(tensor);
    summary.by_type[tensor.type].add(tensor);
    summary.by_use[use].add(tensor);
    if (in_memory.role != MemoryRole::kExperts) continue;
    BlockExperts& experts = summary.experts[static_cast<uint64_t>(std::max(0, in_memory.block))];
    experts.n_experts = tensor.ne[2];
    experts.bytes_per_expert += tensor.bytes / tensor.ne[2];
    experts.weights_per_expert += tensor.n_elements() / tensor.ne[2];
    if (use != TensorUse::kExpert) continue;
    const uint64_t n_used = std::min(summary.n_experts_used, tensor.ne[2]);
    summary.n_active += tensor.n_elements() / tensor.ne[2] * n_used;
    summary.active_expert_bytes += tensor.bytes / tensor.ne[2] * n_used;
  }
  summary.n_active += summary.by_use[TensorUse::kTrunk].n_weights;
  add_state(file, summary);
  return summary;
}

}  // namespace forebay::cli
