#include "train/pipeline/schedule.h"

#include <algorithm>

namespace forebay::train {

std::vector<StageWork> one_forward_one_backward(int64_t stage, int64_t n_stages, size_t n_micro_batches) {
  using Kind = StageWork::Kind;
  const size_t n_ahead = std::min(n_micro_batches, static_cast<size_t>(n_stages - 1 - stage));
  std::vector<StageWork> order;
  for (size_t i = 0; i < n_ahead; ++i) order.push_back({Kind::kForward, i});
  for (size_t i = 0; i < n_micro_batches; ++i) {
    if (i + n_ahead < n_micro_batches) order.push_back({Kind::kForward, i + n_ahead});
    order.push_back({Kind::kBackward, i});
  }
  return order;
}

double bubble_share(int64_t n_stages, size_t n_micro_batches) {
  return static_cast<double>(n_stages - 1) /
         (static_cast<double>(n_micro_batches) + static_cast<double>(n_stages - 1));
}

}  // namespace forebay::train
