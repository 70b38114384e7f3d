#pragma once

#include "train/fit/packer.h"
#include "train/nets/net.h"

namespace forebay::train {

/// Sums over the tokens that count, with gradient.
struct Losses {
  torch::Tensor next;       // -log p(next token)
  torch::Tensor draft;      // -log p(token after it) of the draft head; undefined without one
  torch::Tensor auxiliary;  // the model's own, weighted; undefined without
};
/// `with_draft`: run the draft head, if there is one.
Losses losses_of(Net& net, const Rows& rows, bool with_draft);

/// What `draft` is a sum over.
torch::Tensor draft_weights(const torch::Tensor& weights_BT);

}  // namespace forebay::train
