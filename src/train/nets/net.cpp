#include "train/nets/net.h"

namespace forebay::train {

torch::Tensor Net::logits(const torch::Tensor& ids_BT) {
  torch::Tensor x_BTW = embed(ids_BT);
  for (int64_t index = span_.first_block; index < span_.last_block; ++index)
    x_BTW = block(index, x_BTW, ids_BT);
  return head(x_BTW);
}

}  // namespace forebay::train
