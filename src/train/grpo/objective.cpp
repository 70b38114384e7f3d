#include "train/grpo/objective.h"

namespace forebay::train {
namespace {

constexpr double kMaxLogRatio = 20;

torch::Tensor cut(const torch::Tensor& d) {
  return torch::clamp(d, -kMaxLogRatio, kMaxLogRatio);
}

}  // namespace

torch::Tensor k3(const torch::Tensor& d) {
  const torch::Tensor c = cut(d);
  return torch::expm1(c) - c;
}

torch::Tensor shaped_advantages(const torch::Tensor& advantages, const torch::Tensor& rollout,
                                const torch::Tensor& old, double lambda, double delta) {
  return advantages - lambda * torch::relu((rollout - old).abs() - delta);
}

torch::Tensor token_log_probs(const torch::Tensor& logits_BTV, const torch::Tensor& targets_BT) {
  return torch::log_softmax(logits_BTV, -1).gather(-1, targets_BT.unsqueeze(-1)).squeeze(-1);
}

Objective grpo_objective(const AnswerTokens& t, double n_tokens, const ObjectiveOptions& options) {
  const torch::Tensor zero = torch::zeros({}, t.log_probs.options());
  // Chosen before exp: what is off the mask never meets a gradient.
  const auto masked = [&](const torch::Tensor& x) { return torch::where(t.mask, x, zero); };
  const torch::Tensor to_old = masked(t.log_probs - t.old);
  const torch::Tensor to_reference = masked(t.reference - t.log_probs);
  const torch::Tensor from_rollout = masked(t.rollout - t.log_probs);

  const torch::Tensor ratio = torch::exp(cut(to_old));
  const torch::Tensor plain = ratio * t.advantages;
  const torch::Tensor clipped =
      torch::clamp(ratio, 1 - options.clip_low, 1 + options.clip_high) * t.advantages;
  torch::Tensor gain = torch::min(plain, clipped);
  if (t.weights.defined()) gain = gain * t.weights;
  const torch::Tensor policy = masked(-gain);
  const torch::Tensor reference_kl = k3(to_reference);  // 0 off the mask

  torch::Tensor cvc = torch::zeros_like(policy);
  if (options.cvc == Cvc::kCrossEntropy) cvc = masked(-t.log_probs);
  if (options.cvc == Cvc::kSquare) cvc = from_rollout * from_rollout / 2;

  torch::Tensor loss = policy.sum() + options.beta * reference_kl.sum();
  if (options.cvc == Cvc::kCrossEntropy || options.cvc == Cvc::kSquare)
    loss = loss + options.cvc_lambda * cvc.sum();

  Objective result;
  result.loss = loss / n_tokens;
  const torch::NoGradGuard no_grad;
  const auto total = [](const torch::Tensor& x) { return x.to(torch::kFloat64).sum(); };
  const torch::Tensor over =
      torch::logical_or(to_old.abs() > kMaxLogRatio, to_reference.abs() > kMaxLogRatio);
  result.sums = torch::stack({total(t.mask), total(policy), total(reference_kl), total(cvc),
                              total(torch::logical_and(clipped < plain, t.mask)), total(over)});
  result.ratio_max_dev = (ratio - 1).abs().max().to(torch::kFloat64);
  return result;
}

}  // namespace forebay::train
