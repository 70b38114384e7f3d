/// What is minimised, on tensors of one number per answer token.
#pragma once

#include <cstdint>

#include <torch/torch.h>

namespace forebay::train {

/// How the training view is held to what the sampler saw. A forward pass through codecs gives other log-probs
/// than the sampler's; this pulls them together.
enum class Cvc {
  kNone,
  kCrossEntropy,  // + lambda mean(-log pi): the sampler's tokens become likelier in the training view
  kSquare,        // + lambda mean(d^2) / 2, d = log pi_roll - log pi
  kShaped,        // A - lambda max(|d| - delta, 0), d of the pass before training; see shaped_advantages()
};

struct ObjectiveOptions {
  double clip_low = 0.2;
  double clip_high = 0.2;
  double beta = 0.001;  // of k3 against the reference
  Cvc cvc = Cvc::kNone;
  double cvc_lambda = 0;
  double cvc_delta = 0.5;  // nats
};

/// All [B, T] f32, one entry per token that was predicted. Entries where `mask` is false may hold anything
/// finite, and change nothing.
struct AnswerTokens {
  torch::Tensor log_probs;   // of the pass being trained, with gradient
  torch::Tensor old;         // before the step's first update, same view
  torch::Tensor reference;   // same view
  torch::Tensor rollout;     // what the sampler saw
  torch::Tensor advantages;  // may be [B, 1]
  torch::Tensor weights;     // of token importance sampling; undefined: 1
  torch::Tensor mask;        // bool: of answers that are kept
};

/// Sums over the tokens of the mask, f64 [kSumCount], detached: they add up over micro-batches.
enum ObjectiveSum {
  kSumTokens,
  kSumPolicy,       // the clipped objective, as a loss
  kSumReferenceKl,  // k3
  kSumCvc,          // without lambda
  kSumClipped,      // tokens where the clipped branch was taken
  kSumOverflow,     // tokens whose log-ratio, to old or to the reference, was beyond +-20 and cut
  kSumCount
};

struct Objective {
  torch::Tensor loss;           // scalar with gradient: sums / n_tokens
  torch::Tensor sums;           // [kSumCount] f64
  torch::Tensor ratio_max_dev;  // scalar f64: max |exp(log_probs - old) - 1|
};

/// n_tokens is of the whole step, all micro-batches: tokens kept, not tokens drawn.
///   loss = sum_t [-w_t min(r_t A_t, clip(r_t, 1 - low, 1 + high) A_t) + beta k3_t + lambda cvc_t] / n_tokens
///   r = exp(log_probs - old); k3 = e^d - d - 1, d = reference - log_probs
/// Log-ratios are cut to +-20 before exp, so values and gradients are finite whatever comes in.
Objective grpo_objective(const AnswerTokens& tokens, double n_tokens, const ObjectiveOptions& options);

/// e^d - d - 1 of d cut to +-20, without gradient through what was cut. Source: Schulman 2020, "Approximating
/// KL divergence".
torch::Tensor k3(const torch::Tensor& d);

/// A - lambda max(|rollout - old| - delta, 0), [B, T].
torch::Tensor shaped_advantages(const torch::Tensor& advantages, const torch::Tensor& rollout,
                                const torch::Tensor& old, double lambda, double delta);

/// log softmax of logits [B, T, V] at targets [B, T], f32: finite for every finite input, and at most 0.
torch::Tensor token_log_probs(const torch::Tensor& logits_BTV, const torch::Tensor& targets_BT);

}  // namespace forebay::train
