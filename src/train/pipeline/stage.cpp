#include "train/pipeline/stage.h"

#include <utility>

#include <fmt/format.h>

#include "core/ensure.h"

namespace forebay::train {

Result<std::vector<StageSpan>> split_blocks(int64_t n_blocks, int64_t n_stages) {
  if (n_stages < 1 || n_stages > n_blocks)
    return Error{Code::kInvalidArgument,
                 fmt::format("{} stages: a model of {} blocks has 1 to {}", n_stages, n_blocks, n_blocks)};
  std::vector<StageSpan> spans;
  int64_t next = 0;
  for (int64_t stage = 0; stage < n_stages; ++stage) {
    const int64_t n_own = n_blocks / n_stages + (stage < n_blocks % n_stages ? 1 : 0);
    spans.push_back({.first_block = next,
                     .last_block = next + n_own,
                     .has_embedding = stage == 0,
                     .has_head = stage + 1 == n_stages});
    next += n_own;
  }
  return spans;
}

torch::Tensor Stage::run_blocks(const torch::Tensor& ids_BT, torch::Tensor x_BTW) {
  if (span_.has_embedding) x_BTW = net_.embed(ids_BT);
  for (int64_t index = span_.first_block; index < span_.last_block; ++index)
    x_BTW = net_.block(index, x_BTW, ids_BT);
  return x_BTW;
}

torch::Tensor Stage::infer(const torch::Tensor& ids_BT, const torch::Tensor& x_BTW) {
  const torch::NoGradGuard no_gradients;
  torch::Tensor output = run_blocks(ids_BT, x_BTW);
  if (span_.has_head) output = net_.head(output);
  net_.take_auxiliary_loss();
  return output;
}

torch::Tensor Stage::forward(const torch::Tensor& ids_BT, const torch::Tensor& x_BTW) {
  Pass pass;
  if (!span_.has_embedding) pass.input = x_BTW.detach().requires_grad_(true);
  pass.output = run_blocks(ids_BT, pass.input);
  if (span_.has_head && span_.has_embedding && tied_.is_active()) {
    pass.before_head = pass.output;
    pass.head_input = pass.output.detach().requires_grad_(true);
    pass.output = net_.head(pass.head_input);
  } else if (span_.has_head) {
    pass.output = net_.head(pass.output);
  }
  pass.auxiliary = net_.take_auxiliary_loss();
  torch::Tensor output = pass.output.detach();
  passes_.push_back(std::move(pass));
  return output;
}

torch::Tensor Stage::backward_loss(const std::function<torch::Tensor(const torch::Tensor&)>& loss) {
  ENSURE(span_.has_head && !passes_.empty(), "no logits to take a loss of");
  const torch::Tensor value = loss(passes_.front().output);
  if (!value.defined()) return finish({}, {});
  return finish({value}, {torch::ones_like(value)});
}

torch::Tensor Stage::backward(const torch::Tensor& gradient_BTW) {
  ENSURE(!span_.has_head && !passes_.empty(), "no output to take a gradient of");
  return finish({passes_.front().output}, {gradient_BTW});
}

torch::Tensor Stage::finish(std::vector<torch::Tensor> roots, std::vector<torch::Tensor> gradients) {
  const Pass pass = std::move(passes_.front());
  passes_.pop_front();
  using Use = TiedGradients::Use;
  if (pass.head_input.defined()) {
    if (!roots.empty()) tied_.of(Use::kHead, [&] { torch::autograd::backward(roots, gradients); });
    roots.clear();
    gradients.clear();
    if (pass.head_input.grad().defined()) {
      roots.push_back(pass.before_head);
      gradients.push_back(pass.head_input.grad());
    }
  }
  if (pass.auxiliary.defined()) {
    roots.push_back(pass.auxiliary);
    gradients.push_back(torch::ones_like(pass.auxiliary));
  }
  const Use use = span_.has_embedding ? Use::kEmbedding : Use::kHead;
  if (!roots.empty()) tied_.of(use, [&] { torch::autograd::backward(roots, gradients); });
  if (!pass.input.defined()) return {};
  return pass.input.grad().defined() ? pass.input.grad() : torch::zeros_like(pass.input);
}

std::vector<std::pair<std::string, double>> gradient_squares(const Net& net) {
  std::vector<std::pair<std::string, double>> squares;
  for (const auto& parameter : net.named_parameters()) {
    const torch::Tensor& gradient = parameter.value().grad();
    squares.emplace_back(
        parameter.key(),
        gradient.defined() ? gradient.detach().to(torch::kDouble).square().sum().item<double>() : 0);
  }
  return squares;
}

}  // namespace forebay::train
