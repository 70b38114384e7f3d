#include "train/pipeline/tied_gradients.h"

namespace forebay::train {

TiedGradients::TiedGradients(const Net& net) {
  if (!net.span().has_embedding || !net.span().has_head) return;
  const std::string name = net.tied_parameter();
  if (!name.empty()) parameter_ = net.named_parameters()[name];
}

void TiedGradients::begin() {
  if (!is_active()) return;
  before_ = std::exchange(parameter_.mutable_grad(), torch::Tensor());
  embedding_ = head_ = torch::Tensor();
}

void TiedGradients::end() {
  if (!is_active()) return;
  const torch::NoGradGuard no_gradients;
  const auto sum = [](const torch::Tensor& a, const torch::Tensor& b) {
    return a.defined() && b.defined() ? a + b : a.defined() ? a : b;
  };
  parameter_.mutable_grad() = sum(before_, sum(embedding_, head_));
  before_ = embedding_ = head_ = torch::Tensor();
}

}  // namespace forebay::train
