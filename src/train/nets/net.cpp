#include "train/nets/net.h"

#include <algorithm>

#include <fmt/format.h>

#include "train/nets/dense_net.h"
#include "train/nets/hyper_net.h"

namespace forebay::train {

StageSpan whole_model(const ModelConfig& config) {
  return {0, config.n_blocks, true, true};
}

StageSpan stage_of(const ModelConfig& config, int64_t stage, int64_t n_stages) {
  const int64_t each = config.n_blocks / n_stages, more = config.n_blocks % n_stages;
  const int64_t first = stage * each + std::min(stage, more);
  return {first, first + each + (stage < more ? 1 : 0), stage == 0, stage == n_stages - 1};
}

torch::Tensor Net::trunk(const torch::Tensor& ids_BT) {
  torch::Tensor x_BTW = embed(ids_BT);
  for (int64_t index = span_.first_block; index < span_.last_block; ++index)
    x_BTW = block(index, x_BTW, ids_BT);
  return x_BTW;
}

torch::Tensor Net::logits(const torch::Tensor& ids_BT) {
  return head(trunk(ids_BT));
}

Result<std::shared_ptr<Net>> make_net(const ModelConfig& config, const StageSpan& span,
                                      std::optional<uint64_t> seed) {
  switch (config.family) {
    case Family::kQwen2:
    case Family::kQwen3:
      return std::shared_ptr<Net>(std::make_shared<DenseNet>(config, span, seed));
    case Family::kQwen4Exp:
      return std::shared_ptr<Net>(std::make_shared<HyperNet>(config, span, seed));
    default:
      return Error{Code::kUnsupported,
                   fmt::format("{} is not trained by this version (qwen2, qwen3 and qwen4exp are)",
                               config.architecture)};
  }
}

}  // namespace forebay::train
