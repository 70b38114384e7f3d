#include "train/grpo/learner.h"

#include <algorithm>
#include <cmath>

#include "train/grpo/importance.h"
#include "train/grpo/objective.h"

namespace forebay::train {
namespace {

// After the objective's sums: the largest deviation of a ratio from 1.
constexpr int64_t kDeviation = kSumCount;

torch::Tensor no_sums() {
  return torch::zeros({kSumCount + 1}, torch::kFloat64);
}

void report_importance(const ImportanceReport& is, MetricsRow& row) {
  row.add("is_mean_ratio", is.mean_ratio);
  row.add("is_mean_weight", is.mean_weight);
  row.add("is_ess", is.ess);
  row.add("is_low", is.low);
  row.add("is_high", is.high);
  row.add("is_k3", is.k3);
  row.add("is_chi2_token", is.chi2_token);
  row.add("is_chi2_sequence", is.chi2_sequence);
  row.add("is_refused", is.refused ? 1 : 0);
  row.add("is_alarm", is.alarm ? 1 : 0);
}

}  // namespace

void clip_gradients(Net& net, double norm, double limit) {
  const torch::NoGradGuard no_gradients;
  if (limit <= 0 || norm <= limit) return;
  for (torch::Tensor& parameter : net.parameters())
    if (parameter.grad().defined()) parameter.mutable_grad().mul_(limit / norm);
}

/// What the ticks of a step share.
struct Learner::Tick {
  ObjectiveOptions objective;
  torch::Tensor mask, advantage, weights;
  double n_kept = 0;
  // Of the anchor's replay; undefined without one.
  LogProbs dense_old, dense_reference;
};

Learner::Learner(Net& policy, Views& views, const GrpoSettings& settings, Team& team, SlowCircuit* anchor)
    : policy_(policy),
      views_(views),
      settings_(settings),
      team_(team),
      anchor_(anchor),
      optimizer_(std::make_unique<AdamW>(
          policy, AdamWOptions{.beta2 = 0.999, .weight_decay = settings.grpo.weight_decay})) {}

namespace {

/// The objective's loss of micro-batch i; adds to `sums` where it is called.
MicroLoss loss_of(const Lesson& lesson, const torch::Tensor& old, const torch::Tensor& reference,
                  const torch::Tensor& advantage, const torch::Tensor& weights, const torch::Tensor& mask,
                  double n_kept, const ObjectiveOptions& objective, torch::Tensor& sums) {
  return [=, &lesson, &sums](size_t i, const torch::Tensor& log_probs) {
    const StepBatch::Rows& rows = lesson.batch.rows[i];
    const auto part = [&](const torch::Tensor& flat) {
      return flat.defined() ? flat.slice(0, rows.first, rows.first + rows.n).to(log_probs.device())
                            : torch::Tensor();
    };
    const Objective o = grpo_objective({.log_probs = log_probs,
                                        .old = part(old),
                                        .reference = part(reference),
                                        .rollout = part(lesson.rollout),
                                        .advantages = part(advantage),
                                        .weights = part(weights),
                                        .mask = part(mask)},
                                       n_kept, objective);
    sums.slice(0, 0, kSumCount) += o.sums.cpu();
    sums[kDeviation] = torch::max(sums[kDeviation], o.ratio_max_dev.cpu());
    return o.loss;
  };
}

}  // namespace

/// Dense gradients of the same minibatch, at the same weights.
Result<std::vector<torch::Tensor>> Learner::replay(const Lesson& lesson, const Tick& tick) {
  torch::Tensor unused = no_sums();
  ObjectiveOptions objective = tick.objective;
  objective.cvc = Cvc::kNone;
  optimizer_->zero_grad();
  TRY(views_.train(lesson.batch, lesson.step, tick.dense_old,
                   loss_of(lesson, tick.dense_old.values, tick.dense_reference.values, tick.advantage,
                           tick.weights, tick.mask, tick.n_kept, objective, unused),
                   View::kDense));
  std::vector<torch::Tensor> gradients;
  // A gradient that is not finite is nobody's: every process passes over the tick.
  const double norm = TRY(views_.gradient_norm());
  if (std::isfinite(norm))
    for (const torch::Tensor& parameter : policy_.parameters()) gradients.push_back(parameter.grad());
  optimizer_->zero_grad();
  return gradients;
}

Result<void> Learner::one_tick(const Lesson& lesson, const Tick& tick, torch::Tensor& sums) {
  optimizer_->zero_grad();
  TRY(views_.train(lesson.batch, lesson.step, lesson.old,
                   loss_of(lesson, lesson.old.values, lesson.reference.values, tick.advantage, tick.weights,
                           tick.mask, tick.n_kept, tick.objective, sums)));
  return team_.share(sums, team_.head_rank());
}

Result<void> Learner::learn(const Lesson& lesson, MetricsRow& row) {
  const StepBatch& batch = lesson.batch;
  TRY(check_view(lesson.old.epoch, lesson.reference.epoch));
  Tick tick;
  tick.objective = settings_.objective;
  tick.objective.beta = lesson.beta;
  const std::vector<double> kept(lesson.advantages.kept.begin(), lesson.advantages.kept.end());
  tick.mask = batch.spread(kept) > 0;
  tick.advantage = batch.spread(lesson.advantages.values);
  if (tick.objective.cvc == Cvc::kShaped)
    tick.advantage = shaped_advantages(tick.advantage, lesson.rollout, lesson.old.values,
                                       tick.objective.cvc_lambda, tick.objective.cvc_delta);
  const ImportanceWeights importance =
      importance_weights(batch.padded(lesson.old.values), batch.padded(lesson.rollout),
                         batch.padded(tick.mask), settings_.importance);
  report_importance(importance.report, row);
  if (settings_.importance.weigh) tick.weights = batch.flat(importance.weights);
  tick.n_kept = tick.mask.sum().item<double>();
  if (anchor_ != nullptr) {
    tick.dense_old = TRY(views_.log_probs(Views::Of::kPolicy, View::kDense, batch, lesson.step));
    tick.dense_reference = TRY(views_.log_probs(Views::Of::kReference, View::kDense, batch, lesson.step));
    TRY(check_view(tick.dense_old.epoch, tick.dense_reference.epoch));
  }

  double ratio_max_dev = 0, norm = 0;
  int64_t fired = 0;
  torch::Tensor sums = no_sums();
  bool committed = tick.n_kept > 0;
  for (int64_t i = 0; committed && i < settings_.grpo.ticks; ++i) {
    std::vector<torch::Tensor> dense;
    if (anchor_ != nullptr) dense = TRY(replay(lesson, tick));
    torch::Tensor tick_sums = no_sums();
    TRY(one_tick(lesson, tick, tick_sums));
    norm = TRY(views_.gradient_norm());
    committed = std::isfinite(norm);
    if (!committed) break;
    clip_gradients(policy_, norm, settings_.grpo.clip_norm);
    optimizer_->step(lesson.lr);
    if (!dense.empty()) fired += TRY(anchor_->tick(dense, views_.wire())) ? 1 : 0;
    sums += tick_sums;
    ratio_max_dev = std::max(ratio_max_dev, tick_sums[kDeviation].item<double>());
  }
  optimizer_->zero_grad();
  const int64_t refreshed = TRY(views_.end_step(lesson.step, committed));

  const auto sum = [&](ObjectiveSum which) { return sums[which].item<double>(); };
  const double n = std::max(1.0, sum(kSumTokens));
  double loss = (sum(kSumPolicy) + lesson.beta * sum(kSumReferenceKl)) / n;
  if (tick.objective.cvc == Cvc::kCrossEntropy || tick.objective.cvc == Cvc::kSquare)
    loss += tick.objective.cvc_lambda * sum(kSumCvc) / n;
  row.add("loss", loss);
  row.add("ratio_max_dev", ratio_max_dev);
  row.add("clip_fraction", sum(kSumClipped) / n);
  row.add("overflow_tokens", sum(kSumOverflow));
  row.add("grad_norm", norm);
  row.add("beta", lesson.beta);
  row.add("lr", lesson.lr);
  row.add("tokens_kept", tick.n_kept);
  row.add("skipped", committed ? 0 : 1);
  if (refreshed > 0) row.add("bases_refreshed", static_cast<double>(refreshed));
  if (anchor_ != nullptr) {
    row.add("anchor_fired", static_cast<double>(fired));
    row.add("anchor_fires", static_cast<double>(anchor_->counts().fires));
  }
  return {};
}

}  // namespace forebay::train
