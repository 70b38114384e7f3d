#include "plan/model_footprint.h"

#include <algorithm>
#include <map>

#include "core/page_range.h"
#include "model/tensor_role.h"
#include "model/trunk_copy.h"

namespace forebay {
namespace {

/// What the loader reads as a vector of f32 values: everything of one dimension but the shared expert's gate,
/// and the convolutions' taps.
bool is_copied(const TensorInfo& tensor) {
  if (tensor.name.find("conv1d.") != std::string::npos) return true;
  return tensor.n_rows() == 1 && tensor.name.find("ffn_gate_inp_shexp.") == std::string::npos;
}

/// Adds tensors up by what they are. Confined.
class Adder {
 public:
  Adder(ModelFootprint& footprint, bool own_head) : f_(footprint), own_head_(own_head) {}

  void add(const TensorInfo& tensor) {
    const TensorUse use = use_of(tensor, f_.config.n_blocks, own_head_);
    if (use.draft && !f_.with_draft) return;
    switch (use.role) {
      case MemoryRole::kExperts:
        return add_experts(tensor, use.block);
      case MemoryRole::kNgramTable:
        f_.ngram_bytes += tensor.bytes;
        return;
      case MemoryRole::kUnread:
        return;
      case MemoryRole::kEmbedding:
        f_.trunk_bytes += tensor.bytes;
        f_.embedding_bytes = tensor.bytes;
        f_.trunk_read_bytes += tensor.bytes / std::max<uint64_t>(1, tensor.n_rows());
        return;
      case MemoryRole::kTrunk:
        break;
    }
    if (is_copied(tensor)) f_.copied_bytes += tensor.n_elements() * sizeof(float);
    (use.draft ? f_.draft_bytes : f_.trunk_bytes) += tensor.bytes;
    if (use.draft) return;
    f_.trunk_read_bytes += tensor.bytes;
    trunk_types_[tensor.type] += tensor.bytes;
  }

  void finish() {
    f_.trunk_type = most(trunk_types_);
    f_.expert_type = most(expert_types_);
    for (const auto& [block, planes] : planes_) {
      ExpertFootprint& experts = f_.experts.emplace_back(planes.experts);
      experts.slot_bytes = slot_bytes(planes.bytes);
    }
  }

 private:
  struct Planes {
    ExpertFootprint experts;
    std::vector<uint64_t> bytes;
  };

  void add_experts(const TensorInfo& tensor, int block) {
    Planes& planes = planes_[block];
    const uint64_t n = tensor.ne[2];
    planes.experts.n_experts = static_cast<int64_t>(n);
    planes.experts.bytes += tensor.bytes / n;
    // Fused files have gate and up in one tensor; they are read as two planes.
    const uint64_t n_planes = tensor.name.find("ffn_gate_up_exps.") != std::string::npos ? 2 : 1;
    planes.bytes.insert(planes.bytes.end(), n_planes, tensor.bytes / n / n_planes);
    expert_types_[tensor.type] += tensor.bytes;
  }

  static DType most(const std::map<DType, uint64_t>& bytes) {
    const auto at = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
    return at == bytes.end() ? DType::kF32 : at->first;
  }

  ModelFootprint& f_;
  const bool own_head_;
  std::map<int, Planes> planes_;
  std::map<DType, uint64_t> trunk_types_, expert_types_;
};

bool has_tensor(std::span<const TensorInfo> tensors, std::string_view name) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const TensorInfo& t) { return t.name == name; });
}

}  // namespace

uint64_t text_bytes_of(const GgufMetadata& metadata) {
  // Metadata keeps the strings, the tokenizer keeps them again, and its tables once more.
  constexpr uint64_t kCopies = 3;
  uint64_t sum = 0;
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"})
    if (const Result<std::span<const std::string>> strings = metadata.get_strings(key))
      for (const std::string& text : *strings) sum += sizeof(std::string) + text.size();
  return kCopies * sum;
}

uint64_t slot_bytes(std::span<const uint64_t> plane_bytes) {
  uint64_t sum = 0;
  for (const uint64_t bytes : plane_bytes) sum += (bytes + 2 * kPageBytes - 1) / kPageBytes * kPageBytes;
  return sum;
}

uint64_t ModelFootprint::all_slots_bytes() const {
  uint64_t sum = 0;
  for (const ExpertFootprint& e : experts) sum += e.slot_bytes * static_cast<uint64_t>(e.n_experts);
  return sum;
}

uint64_t ModelFootprint::expert_bytes_per_token() const {
  uint64_t sum = 0;
  for (size_t block = 0; block < experts.size() && block < static_cast<size_t>(config.n_blocks); ++block)
    sum += experts[block].bytes * static_cast<uint64_t>(config.ffn.n_used);
  return sum;
}

ModelFootprint ModelFootprint::from_tensors(const ModelConfig& config, std::span<const TensorInfo> tensors,
                                            bool with_draft) {
  ModelFootprint f;
  f.name = config.name;
  f.config = config;
  f.with_draft = with_draft && config.n_mtp_blocks > 0;
  Adder adder(f, has_tensor(tensors, "output.weight"));
  for (const TensorInfo& tensor : tensors) {
    adder.add(tensor);
    f.file_bytes += tensor.bytes;
  }
  adder.finish();
  f.trunk_copy_bytes = f.trunk_bytes - f.embedding_bytes;
  f.draft_copy_bytes = f.draft_bytes;
  return f;
}

Result<ModelFootprint> ModelFootprint::from_gguf(const GgufFile& file, const GgufFile* draft_file,
                                                 bool with_draft) {
  ModelConfig config = TRY(ModelConfig::from_gguf(file));
  std::vector<TensorInfo> tensors(file.tensors().begin(), file.tensors().end());
  if (draft_file != nullptr) {
    TRY(config.check_draft_head(*draft_file));
    config.n_mtp_blocks = 1;
    // Only its block is used, in place of one inside `file`.
    const auto is_draft = [&](const TensorInfo& t) { return use_of(t, config.n_blocks, true).draft; };
    std::erase_if(tensors, is_draft);
    for (const TensorInfo& tensor : draft_file->tensors())
      if (is_draft(tensor)) tensors.push_back(tensor);
  }
  ModelFootprint f = from_tensors(config, tensors, with_draft);
  f.file_bytes = file.file_bytes() + (draft_file != nullptr ? draft_file->file_bytes() : 0);
  f.text_bytes = text_bytes_of(file.metadata());
  if (!f.with_draft) config.n_mtp_blocks = 0;
  const TrunkTensors stay = trunk_tensors(config, file, draft_file);
  f.trunk_copy_bytes = extent_bytes(trunk_extents(stay.trunk));
  f.draft_copy_bytes = extent_bytes(trunk_extents(stay.draft));
  return f;
}

}  // namespace forebay
