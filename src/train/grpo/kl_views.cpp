#include "train/grpo/kl_views.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "train/monitor/kl_ledger.h"

namespace forebay::train {
namespace {

/// The policy with other weights while it lives.
class Swapped {
 public:
  Swapped(Net& net, const NamedTensors& with) : net_(net) {
    const torch::NoGradGuard no_gradients;
    for (auto& item : net_.named_parameters()) {
      before_[item.key()] = item.value().detach().clone();
      item.value().copy_(with.at(item.key()));
    }
  }
  ~Swapped() {
    const torch::NoGradGuard no_gradients;
    for (auto& item : net_.named_parameters()) item.value().copy_(before_.at(item.key()));
  }
  Swapped(const Swapped&) = delete;

 private:
  Net& net_;
  NamedTensors before_;
};

/// The chain, view after view.
class Chain {
 public:
  void add(ViewKind kind, std::string key, const torch::Tensor& log_probs) {
    const torch::Tensor values = log_probs.to(torch::kCPU, torch::kFloat).contiguous();
    const std::vector<float> copy(values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
    keys_.push_back(key);
    views_.push_back({kind, std::move(key), [copy]() -> Result<std::vector<float>> { return copy; }});
  }
  /// The term of each view is called after the shortcut that it adds.
  Result<void> report(double gap_as_run, bool must_arrive, MetricsRow& row) const {
    const KlLedger ledger = TRY(make_ledger(views_));
    double as_run = 0;  // from the sampler as it ran on
    for (size_t i = 0; i < ledger.terms.size(); ++i) {
      row.add("ledger_" + keys_[i + 1], ledger.terms[i].mean);
      if (i > 0) as_run += ledger.terms[i].mean;
    }
    row.add("ledger_gap", ledger.gap);
    row.add("ledger_residual", ledger.residual());
    if (std::abs(as_run - gap_as_run) > 1e-6)
      return Error{Code::kInternal, fmt::format("ledger: the terms add up to {}, the gap of the step is {}",
                                                as_run, gap_as_run)};
    // A sum of differences closes whatever they are; that the last view is the step's own is no tautology.
    const double last = ledger.terms.back().mean;
    if (must_arrive && std::abs(last) > 1e-6)
      return Error{Code::kInternal,
                   fmt::format("ledger: its last view is {} nats from the log-probs that the step trains on, "
                               "under the same weights and noise",
                               last)};
    return {};
  }

 private:
  std::vector<LedgerView> views_;
  std::vector<std::string> keys_;
};

Result<torch::Tensor> sampler_dense(const LedgerStep& at, WeightFeed& feed, Sampler* sampler, Team& team) {
  torch::Tensor values = torch::zeros_like(at.rollout);
  TRY(feed.exact(WeightFeed::Exactly::kHeld, at.step - 1, sampler));
  if (sampler != nullptr) {
    int64_t longest = 1;
    for (const Rollout& rollout : at.drawn.rollouts)
      longest = std::max(longest, static_cast<int64_t>(rollout.tokens.size()));
    const std::vector<Rollout> scored = TRY(
        sampler->draw(at.drawn.prompts,
                      {.n_answers = at.drawn.n_answers, .max_tokens = longest, .given = at.drawn.rollouts}));
    std::vector<float> flat;
    for (const Rollout& rollout : scored)
      flat.insert(flat.end(), rollout.log_probs.begin(), rollout.log_probs.end());
    values = torch::tensor(flat);
  }
  TRY(team.share(values, 0));
  return values;
}

}  // namespace

Result<void> add_ledger(const LedgerStep& at, Net& policy, Views& views, WeightFeed& feed, Sampler* sampler,
                        Team& team, MetricsRow& row) {
  Chain chain;
  const torch::Tensor as_sent = TRY(sampler_dense(at, feed, sampler, team));
  chain.add(ViewKind::kSamplerDense, "sampler_dense", as_sent);
  chain.add(ViewKind::kSampler, "sampler", at.rollout);
  {
    std::optional<Swapped> held;
    if (feed.has_stale(at.step - 1)) held.emplace(policy, feed.held());
    const bool fresh = TRY(views.prepare_fresh_bases());
    const Views::Bases bases = fresh ? Views::Bases::kFresh : Views::Bases::kInUse;
    const LogProbs dense = TRY(views.log_probs(Views::Of::kPolicy, View::kDense, at.batch, at.step));
    chain.add(ViewKind::kTrainerDense, "engine", dense.values);
    const int64_t n = views.has_codec() ? views.n_boundaries() : 0;
    for (int64_t b = 1; b <= n; ++b) {
      const torch::Tensor partial = TRY(views.partial_log_probs(at.batch, at.step, b, bases));
      chain.add(ViewKind::kBoundary, fmt::format("boundary_{}", b), partial);
    }
    if (fresh) {
      const torch::Tensor in_use = TRY(views.partial_log_probs(at.batch, at.step, n, Views::Bases::kInUse));
      chain.add(ViewKind::kStaleBasis, "stale_basis", in_use);
    }
  }
  chain.add(ViewKind::kStale, "stale_weights", at.old);
  const double gap = (at.rollout.to(torch::kFloat64) - at.old.to(torch::kFloat64)).mean().item<double>();
  const bool must_arrive = !feed.has_stale(at.step - 1) && views.shares_noise();
  return chain.report(gap, must_arrive, row);
}

}  // namespace forebay::train
