#include "cli/model_summary.h"

#include <algorithm>
#include <charconv>

#include "model/config.h"

namespace forebay::cli {
namespace {

/// N of "blk.N.", if the name begins so.
std::optional<uint64_t> block_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  uint64_t block = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, block);
  if (error != std::errc() || rest == end || *rest != '.') return std::nullopt;
  return block;
}

/// A stack of experts: ne[2] of them.
bool is_expert_plane(const TensorInfo& tensor) {
  return tensor.name.find("_exps.") != std::string::npos && tensor.n_dims == 3;
}

class Classifier {
 public:
  Classifier(const GgufFile& file, const std::string& architecture)
      : own_head_(file.find("output.weight") != nullptr) {
    const auto key = [&](std::string_view suffix) {
      return file.metadata().get_uint(architecture + "." + std::string(suffix));
    };
    const Result<uint64_t> n_blocks = key("block_count");
    const Result<uint64_t> n_draft = key("nextn_predict_layers");
    if (n_blocks && n_draft && *n_draft < *n_blocks) first_draft_block_ = *n_blocks - *n_draft;
  }

  TensorUse use_of(const TensorInfo& tensor) const {
    const std::optional<uint64_t> block = block_of(tensor.name);
    if (block && *block >= first_draft_block_) return TensorUse::kDraft;
    if (is_expert_plane(tensor)) return TensorUse::kExpert;
    // A tied embedding is also the head, which every token multiplies.
    if (tensor.name == "token_embd.weight") return own_head_ ? TensorUse::kTable : TensorUse::kTrunk;
    if (tensor.name.starts_with("per_layer_token_embd.")) return TensorUse::kTable;
    return TensorUse::kTrunk;
  }

 private:
  bool own_head_;
  uint64_t first_draft_block_ = UINT64_MAX;
};

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
    const TensorUse use = classifier.use_of(tensor);
    summary.all.add(tensor);
    summary.by_type[tensor.type].add(tensor);
    summary.by_use[use].add(tensor);
    if (!is_expert_plane(tensor)) continue;
    BlockExperts& experts = summary.experts[block_of(tensor.name).value_or(0)];
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
