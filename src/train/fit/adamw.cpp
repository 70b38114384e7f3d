#include "train/fit/adamw.h"

#include <cmath>

namespace forebay::train {

AdamW::AdamW(torch::nn::Module& module, const AdamWOptions& options) : options_(options) {
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& p = item.value();
    slots_.push_back({item.key(), p, torch::zeros_like(p), torch::zeros_like(p),
                      p.dim() >= 2 && item.key().find("conv1d") == std::string::npos});
  }
}

void AdamW::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.mutable_grad() = torch::Tensor();
}

torch::Tensor AdamW::clip(double limit) {
  const torch::NoGradGuard no_gradients;
  std::vector<torch::Tensor> gradients, norms;
  for (const Slot& slot : slots_)
    if (slot.parameter.grad().defined()) gradients.push_back(slot.parameter.grad());
  if (gradients.empty()) return torch::zeros({});
  norms = at::_foreach_norm(gradients, 2);
  const torch::Tensor norm = torch::stack(norms).norm();
  if (limit > 0) {
    const torch::Tensor scale = (limit / (norm + 1e-6)).clamp_max(1.0);
    for (torch::Tensor& gradient : gradients) gradient.mul_(scale);
  }
  return norm;
}

void AdamW::step(double lr) {
  const torch::NoGradGuard no_gradients;
  ++n_steps_;
  const auto t = static_cast<double>(n_steps_);
  const double m_scale = 1 - std::pow(options_.beta1, t), v_scale = 1 - std::pow(options_.beta2, t);
  for (const bool decays : {true, false}) {
    std::vector<torch::Tensor> p, g, m, v;
    for (const Slot& slot : slots_) {
      if (slot.decays != decays || !slot.parameter.grad().defined()) continue;
      p.push_back(slot.parameter);
      g.push_back(slot.parameter.grad());
      m.push_back(slot.m);
      v.push_back(slot.v);
    }
    if (p.empty()) continue;
    if (decays && options_.weight_decay > 0) at::_foreach_mul_(p, 1 - lr * options_.weight_decay);
    at::_foreach_mul_(m, options_.beta1);
    at::_foreach_add_(m, g, 1 - options_.beta1);
    at::_foreach_mul_(v, options_.beta2);
    at::_foreach_addcmul_(v, g, g, 1 - options_.beta2);
    std::vector<torch::Tensor> divisor = at::_foreach_sqrt(v);
    at::_foreach_mul_(divisor, 1 / std::sqrt(v_scale));
    at::_foreach_add_(divisor, options_.eps);
    at::_foreach_addcdiv_(p, m, divisor, -lr / m_scale);
  }
}

std::map<std::string, torch::Tensor> AdamW::state() const {
  std::map<std::string, torch::Tensor> state;
  for (const Slot& slot : slots_) {
    state["adam.m." + slot.name] = slot.m;
    state["adam.v." + slot.name] = slot.v;
  }
  return state;
}

}  // namespace forebay::train
