#include "model/tensor_role.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace forebay {
namespace {

/// N of "blk.N.", if the name begins so.
std::optional<int> block_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int block = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, block);
  if (error != std::errc() || rest == end || *rest != '.' || block < 0) return std::nullopt;
  return block;
}

}  // namespace

TensorUse use_of(const TensorInfo& tensor, int n_blocks, bool own_head) {
  TensorUse use;
  use.block = block_of(tensor.name).value_or(-1);
  use.draft = use.block >= n_blocks;
  if (tensor.name.find("_exps.") != std::string::npos && tensor.n_dims == 3)
    use.role = MemoryRole::kExperts;
  else if (tensor.name.starts_with("per_layer_token_embd."))
    use.role = MemoryRole::kNgramTable;
  else if (use.draft && tensor.name.find(".indexer.") != std::string::npos)
    use.role = MemoryRole::kUnread;
  else if (tensor.name == "token_embd.weight" && own_head)
    use.role = MemoryRole::kEmbedding;
  return use;
}

TrunkTensors trunk_tensors(const ModelConfig& config, const GgufFile& file, const GgufFile* draft_file) {
  const bool own_head = file.find("output.weight") != nullptr;
  TrunkTensors found;
  const auto add = [&](const GgufFile& from, bool draft) {
    for (const TensorInfo& tensor : from.tensors()) {
      const TensorUse use = use_of(tensor, config.n_blocks, own_head);
      if (use.role == MemoryRole::kTrunk && use.draft == draft)
        (draft ? found.draft : found.trunk).push_back(&tensor);
    }
  };
  add(file, false);
  if (config.n_mtp_blocks > 0) add(draft_file != nullptr ? *draft_file : file, true);
  return found;
}

}  // namespace forebay
