#include "train/fit/losses.h"

namespace forebay::train {

torch::Tensor draft_weights(const torch::Tensor& weights_BT) {
  return weights_BT.narrow(1, 1, weights_BT.size(1) - 1);
}

Losses losses_of(Net& net, const Rows& rows, bool with_draft) {
  Losses losses;
  const torch::Tensor x = net.trunk(rows.ids_BT);
  losses.next = -(log_probs(net.head(x), rows.targets_BT) * rows.weights_BT).sum();
  if (with_draft) {
    // Row t has read token t + 1, which is target t, and is about target t + 1.
    const torch::Tensor logits = net.draft_logits(x, rows.ids_BT);
    if (logits.defined()) {
      const int64_t n = logits.size(1);
      losses.draft =
          -(log_probs(logits, rows.targets_BT.narrow(1, 1, n)) * draft_weights(rows.weights_BT)).sum();
    }
  }
  losses.auxiliary = net.take_auxiliary_loss();
  return losses;
}

}  // namespace forebay::train
