#include "train/grpo/controller.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/ensure.h"

namespace forebay::train {
namespace {

Error wrong(std::string text) {
  return {Code::kInvalidArgument, "setpoint: " + std::move(text)};
}

}  // namespace

Result<SetpointTable> SetpointTable::create(std::span<const double> points, double kappa) {
  if (points.empty())
    return wrong("no points: the controller wants the kl_dense of a control without codecs");
  if (points.size() % 2 != 0)
    return wrong(fmt::format("{} numbers, expected pairs of step and nats", points.size()));
  if (!(kappa > 0)) return wrong(fmt::format("kappa {}, expected more than 0", kappa));
  SetpointTable table;
  for (size_t i = 0; i < points.size(); i += 2) {
    const double step = points[i], nats = points[i + 1];
    if (!table.points_.empty() && step <= table.points_.rbegin()->first)
      return wrong(
          fmt::format("step {} after step {}, expected rising steps", step, table.points_.rbegin()->first));
    if (!(nats > 0) || !std::isfinite(nats))
      return wrong(fmt::format("{} nats at step {}, expected more than 0", nats, step));
    table.points_[step] = nats * kappa;
  }
  return table;
}

Result<SetpointTable> SetpointTable::from_metrics(std::string_view jsonl, double kappa) {
  std::map<double, double> last;  // a step that was run again after a resume counts as it was run last
  int64_t n = 0;
  while (!jsonl.empty()) {
    const size_t end = jsonl.find('\n');
    if (end == std::string_view::npos) break;  // a line that was not finished
    const auto row = nlohmann::json::parse(jsonl.substr(0, end), nullptr, /*allow_exceptions=*/false);
    ++n;
    if (!row.is_object()) return Error{Code::kCorrupt, fmt::format("setpoint: line {} is no JSON object", n)};
    const auto step = row.find("step"), kl = row.find("kl_dense");
    if (step != row.end() && step->is_number() && kl != row.end() && kl->is_number() && kl->get<double>() > 0)
      last[step->get<double>()] = kl->get<double>();
    jsonl.remove_prefix(end + 1);
  }
  std::vector<double> points;
  for (const auto& [step, nats] : last) points.insert(points.end(), {step, nats});
  return create(points, kappa);
}

double SetpointTable::at(int64_t step) const {
  const auto x = static_cast<double>(step);
  const auto after = points_.lower_bound(x);
  if (after == points_.end()) return points_.rbegin()->second;
  if (after == points_.begin() || after->first == x) return after->second;
  const auto before = std::prev(after);
  const double share = (x - before->first) / (after->first - before->first);
  return before->second + share * (after->second - before->second);
}

BetaController::BetaController(const ControllerOptions& options, SetpointTable table, double beta)
    : options_(options),
      table_(std::move(table)),
      beta_(std::clamp(beta, options.beta_min, options.beta_max)) {}

void BetaController::update(int64_t step, double kl_dense) {
  if (!std::isfinite(kl_dense)) return;  // a broken step says nothing about how far the run has gone
  const double moved = beta_ + options_.eta * (kl_dense - table_.at(step));
  beta_ = std::clamp(moved, options_.beta_min, options_.beta_max);
}

void LrBrake::update(double gap_dense) {
  const double gap = std::abs(gap_dense);
  braking_ = false;
  if (!gaps_.empty() && gap > options_.floor) {
    std::vector<double> sorted = gaps_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::ranges::nth_element(sorted, middle);
    braking_ = gap > options_.over_median * *middle;
  }
  if (braking_) ++n_fired_;
  gaps_.push_back(gap);
}

void LrBrake::restore(State state) {
  gaps_ = std::move(state.gaps);
  braking_ = state.braking;
  n_fired_ = state.n_fired;
}

}  // namespace forebay::train
