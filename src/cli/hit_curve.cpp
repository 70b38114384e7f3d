#include "cli/hit_curve.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/format.h"
#include "replay/replay.h"

namespace forebay::cli {
namespace {

Error other_model(const RouteLog& log, const ModelFootprint& model) {
  return {Code::kInvalidArgument,
          fmt::format("a trace of {}: {} blocks of {} experts, {} per token; {} has {} of {}, {}",
                      log.header.model.empty() ? "another model" : log.header.model, log.header.n_blocks(),
                      log.header.n_experts, log.header.n_used, model.name, model.experts.size(),
                      model.config.ffn.n_experts, model.config.ffn.n_used)};
}

}  // namespace

Result<HitCurve> measured_hit_curve(const RouteLog& log, const ModelFootprint& model, double share,
                                    ThreadPool& pool) {
  // A draft head's block may be in one of them and not in the other.
  const auto n_blocks = static_cast<int64_t>(model.experts.size());
  if (log.header.n_experts != model.config.ffn.n_experts || log.header.n_used != model.config.ffn.n_used ||
      std::abs(n_blocks - log.header.n_blocks()) > 1)
    return other_model(log, model);
  constexpr uint64_t kLeastTokens = 16;
  if (log.n_tokens < kLeastTokens)
    return Error{Code::kInvalidArgument,
                 fmt::format("{} tokens, expected at least {}", log.n_tokens, kLeastTokens)};

  const auto total = static_cast<double>(log.total_slot_bytes());
  ReplayGrid grid;
  grid.policies = {EvictionPolicy::kDecay};
  grid.half_lives = {40.0 * log.n_blocks_with_experts()};  // as the cache's own
  for (const double s : {share, 0.05, 0.1, 0.25, 0.5, 0.75}) {
    const auto budget = static_cast<uint64_t>(s * total);
    if (check_budget(log, budget) && s < 1) grid.budgets.push_back(budget);
  }
  if (grid.budgets.empty())
    return Error{Code::kInvalidArgument, fmt::format("no room for {} experts of the traced model at once in "
                                                     "{:.1f} % of its experts",
                                                     log.header.n_used, 100 * share)};
  ReplayOptions options{.warm_up_tokens = std::min<uint64_t>(512, log.n_tokens / 4)};
  const bool has_answers = std::any_of(log.requests.begin(), log.requests.end(),
                                       [](const LoggedRequest& r) { return r.phase == RoutePhase::kDecode; });
  options.phases = has_answers ? ReplayPhases::kDecode : ReplayPhases::kAll;
  const std::vector<ReplayRow> rows = TRY(replay(log, grid, options, pool, nullptr, {}));

  std::vector<HitCurve::Point> points;
  for (const ReplayRow& row : rows)
    points.push_back({static_cast<double>(row.result.config.budget_bytes) / total, row.hit_rate()});
  std::sort(points.begin(), points.end(),
            [](const HitCurve::Point& a, const HitCurve::Point& b) { return a.resident < b.resident; });
  for (size_t i = 1; i < points.size(); ++i) points[i].hits = std::max(points[i].hits, points[i - 1].hits);
  return HitCurve(std::move(points), fmt::format("measured: a trace of {} tokens, replayed with {}",
                                                 grouped_digits(log.n_tokens), name_of(*grid.policies[0])));
}

}  // namespace forebay::cli
