#include "lab/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "lab/slope.h"

namespace forebay::lab {
namespace {

constexpr std::string_view kDense[] = {"gap", "gap_dense", "grad_norm", "kl_dense", "reward", "val_accuracy"};
constexpr int64_t kHalfWindow = 10;  // a level is the mean of 21 steps

double level(const Series& series, DenseMetric metric, int64_t first, int64_t last) {
  const Series::Points points = series.points(metric.name(), first, last);
  return points.value.empty() ? kNaN : mean_of(points.value).value;
}

double median(const Series& series, DenseMetric metric, int64_t first, int64_t last) {
  return median_of(series.points(metric.name(), first, last).value);
}

RankedArm measured(const Arm& arm, const RankingRules& rules, DenseMetric objective) {
  const Series& series = *arm.series;
  const int64_t end = rules.horizon, fifth = std::max<int64_t>(1, end / 5);
  const int64_t settled = std::min(rules.settled, end / 2);
  RankedArm out;
  out.name = arm.name;
  out.steps = series.last_step();
  out.gap_drift = level(series, DenseMetric::gap(), end - 2 * kHalfWindow, end) /
                  level(series, DenseMetric::gap(), settled - kHalfWindow, settled + kHalfWindow);
  out.gradient_drift = median(series, DenseMetric::gradient_norm(), end - fifth + 1, end) /
                       median(series, DenseMetric::gradient_norm(), 1, fifth);
  const Series::Points norms = series.points(DenseMetric::gradient_norm().name(), 0, end);
  out.gradient_max = norms.value.empty() ? kNaN : *std::max_element(norms.value.begin(), norms.value.end());
  out.dense_kl = level(series, DenseMetric::dense_kl(), end - fifth + 1, end);
  out.objective = level(series, objective, end - fifth + 1, end);
  return out;
}

double most_wire_bits(const Series& series) {
  double most = 0;
  for (const char* leg : {"wire_bits_fwd", "wire_bits_bwd"})
    for (const double bits : series.points(leg).value) most = std::max(most, bits);
  return most;
}

}  // namespace

std::optional<DenseMetric> DenseMetric::named(std::string_view metric) {
  for (const std::string_view known : kDense)
    if (known == metric) return DenseMetric(known);
  return std::nullopt;
}
DenseMetric DenseMetric::gap() {
  return DenseMetric("gap");
}
DenseMetric DenseMetric::gradient_norm() {
  return DenseMetric("grad_norm");
}
DenseMetric DenseMetric::dense_kl() {
  return DenseMetric("kl_dense");
}
DenseMetric DenseMetric::reward() {
  return DenseMetric("reward");
}
DenseMetric DenseMetric::accuracy() {
  return DenseMetric("val_accuracy");
}

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::kRanked:
      return "ranked";
    case Standing::kReference:
      return "reference";
    case Standing::kUnproven:
      return "unproven";
    case Standing::kCollapsed:
      return "collapsed";
    case Standing::kIneligible:
      return "ineligible";
    case Standing::kVetoed:
      return "vetoed";
  }
  return "unknown";
}

std::vector<RankedArm> rank(std::span<const Arm> arms, const Series* control, const RankingRules& rules,
                            DenseMetric objective) {
  const int64_t fifth = std::max<int64_t>(1, rules.horizon / 5);
  const double control_kl =
      control == nullptr ? kNaN
                         : level(*control, DenseMetric::dense_kl(), rules.horizon - fifth + 1, rules.horizon);
  std::vector<RankedArm> out;
  for (const Arm& arm : arms) {
    RankedArm row = measured(arm, rules, objective);
    const double bits = most_wire_bits(*arm.series);
    // Eligibility, then the veto, then what is measured: in this order.
    if (arm.is_reference) {
      row.standing = Standing::kReference;
    } else if (rules.wire_bits > 0 && bits > rules.wire_bits) {
      row.standing = Standing::kIneligible;
      row.why = fmt::format("{:.2f} bits per token and leg, at most {:.2f}", bits, rules.wire_bits);
    } else if (arm.collapsed) {
      row.standing = Standing::kCollapsed;
      row.why = "it did not reach its end";
    } else if (row.steps < rules.horizon) {
      row.standing = Standing::kUnproven;
      row.why = fmt::format("{} steps of {}", row.steps, rules.horizon);
    } else if (row.dense_kl > rules.dense_kl_veto * control_kl) {
      row.standing = Standing::kVetoed;
      row.why = fmt::format("dense KL {:.4g}, the control's is {:.4g}", row.dense_kl, control_kl);
    } else if (std::isnan(row.gap_drift)) {
      row.standing = Standing::kUnproven;
      row.why = "the gap was not measured";
    } else {
      row.standing = Standing::kRanked;
    }
    out.push_back(std::move(row));
  }
  std::stable_sort(out.begin(), out.end(), [](const RankedArm& a, const RankedArm& b) {
    if (a.standing != b.standing) return a.standing < b.standing;
    if (a.standing != Standing::kRanked) return false;
    if (a.gap_drift != b.gap_drift) return a.gap_drift < b.gap_drift;
    return a.gradient_drift < b.gradient_drift;
  });
  return out;
}

}  // namespace forebay::lab
