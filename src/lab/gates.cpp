#include "lab/gates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace forebay::lab {
namespace {

// Windows of the study: 41-60, 61-80, 81-100 and 100-120 (21 rows). The slope's bar is 0.001408 / 2.8 nats
// per step, 0.010 nats over 20 steps.
constexpr double kGapSlopeBar = 0.0005;
constexpr std::string_view kG2 = "the gap must not grow by 0.010 nats in 20 steps";

constexpr Gate kGates[] = {
    {"study.G1", "reward", Statistic::kMean, 100, 120, Side::kAtLeast, 0.6248, false,
     "it learns: the mean score"},
    {"study.G2", "gap", Statistic::kSlope, 100, 120, Side::kAtMost, kGapSlopeBar, false, kG2},
    {"study.G2@41-60", "gap", Statistic::kSlope, 41, 60, Side::kAtMost, kGapSlopeBar, false, kG2},
    {"study.G2@61-80", "gap", Statistic::kSlope, 61, 80, Side::kAtMost, kGapSlopeBar, false, kG2},
    {"study.G2@81-100", "gap", Statistic::kSlope, 81, 100, Side::kAtMost, kGapSlopeBar, false, kG2},
    {"study.G3", "kl_view", Statistic::kSlope, 100, 120, Side::kAtMost, kGapSlopeBar, true,
     "drift as the codec sees it, which ranks nothing"},
    {"learns", "val_accuracy", Statistic::kGain, 0, 160, Side::kAtLeast, 0.10, false,
     "ten points more right answers than at the start"},
    {"learns-some", "val_accuracy", Statistic::kGain, 0, 160, Side::kAtLeast, 0.0, false,
     "more right answers than at the start"},
    {"gap-flat", "gap", Statistic::kSlope, 41, 120, Side::kAtMost, kGapSlopeBar, false,
     "the gap must not grow, over a window four times as long"},
    {"dense-drift", "kl_dense", Statistic::kOfControl, 81, 120, Side::kAtMost, 1.5, false,
     "no further from the reference than 1.5 times the control, both without codec"},
    {"on-policy", "ratio_max_dev", Statistic::kMax, 0, 1 << 30, Side::kAtMost, 0, false,
     "one optimiser tick per batch: the ratio is exactly 1"},
};

constexpr size_t kFewestForSlope = 8;
constexpr size_t kFewestForMean = 3;
constexpr double kUsualItems = 2000;

Verdict uninformative(std::string note) {
  Verdict verdict;
  verdict.estimate = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0};
  verdict.minimum_detectable = std::numeric_limits<double>::infinity();
  verdict.note = std::move(note);
  return verdict;
}

Estimate gain(const Series& run, const Series::Points& points) {
  double items = kUsualItems;
  if (const auto given = run.points("val_items"); !given.value.empty() && given.value.front() >= 1)
    items = given.value.front();
  const auto variance = [items](double p) {
    return std::clamp(p, 0.0, 1.0) * (1 - std::clamp(p, 0.0, 1.0)) / items;
  };
  const double from = points.value.front(), to = points.value.back();
  return {to - from, std::sqrt(variance(from) + variance(to)), static_cast<int64_t>(points.value.size())};
}

Estimate ratio(const Estimate& a, const Estimate& b) {
  const double value = a.value / b.value;
  return {value, std::abs(value) * std::hypot(a.error / a.value, b.error / b.value), a.n};
}

}  // namespace

std::span<const Gate> all_gates() {
  return kGates;
}

Result<Gate> gate_named(std::string_view name) {
  std::string known;
  for (const Gate& gate : kGates) {
    if (gate.name == name) return gate;
    known += (known.empty() ? "" : ", ") + std::string(gate.name);
  }
  return Error{Code::kNotFound, fmt::format("no gate '{}': there are {}", name, known)};
}

std::string_view name_of(Outcome outcome) {
  return outcome == Outcome::kPass ? "pass" : outcome == Outcome::kFail ? "fail" : "uninformative";
}

Verdict judge(const Gate& gate, const Series& run, const Series* control) {
  const Series::Points points = run.points(gate.metric, gate.first, gate.last);
  const size_t n = points.value.size();
  if (n == 0) return uninformative(fmt::format("{} was not measured in the window", gate.metric));
  if (run.last_step() < gate.last && gate.statistic != Statistic::kGain && gate.statistic != Statistic::kMax)
    return uninformative(fmt::format("the run ends at step {}, inside the window", run.last_step()));
  Verdict verdict;
  switch (gate.statistic) {
    case Statistic::kSlope:
      if (n < kFewestForSlope) return uninformative(fmt::format("{} points, wanted {}", n, kFewestForSlope));
      verdict.estimate = slope_of(points.step, points.value);
      break;
    case Statistic::kMean:
      if (n < kFewestForMean) return uninformative(fmt::format("{} points, wanted {}", n, kFewestForMean));
      verdict.estimate = mean_of(points.value);
      break;
    case Statistic::kGain:
      if (n < 2) return uninformative("measured once only");
      verdict.estimate = gain(run, points);
      break;
    case Statistic::kMax:
      verdict.estimate = {*std::max_element(points.value.begin(), points.value.end()), 0,
                          static_cast<int64_t>(n)};
      break;
    case Statistic::kOfControl: {
      const Series::Points other =
          control == nullptr ? Series::Points{} : control->points(gate.metric, gate.first, gate.last);
      if (n < kFewestForMean || other.value.size() < kFewestForMean)
        return uninformative(
            fmt::format("{} points and {} of the control, wanted {}", n, other.value.size(), kFewestForMean));
      verdict.estimate = ratio(mean_of(points.value), mean_of(other.value));
      break;
    }
  }
  verdict.minimum_detectable = verdict.estimate.minimum_detectable();
  if (!std::isfinite(verdict.estimate.value) || !std::isfinite(verdict.estimate.error)) {
    verdict.note = "not a finite number";
    return verdict;
  }
  const bool at_most = gate.side == Side::kAtMost;
  const bool within = at_most ? verdict.estimate.high() <= gate.bar : verdict.estimate.low() >= gate.bar;
  const bool beyond = at_most ? verdict.estimate.low() > gate.bar : verdict.estimate.high() < gate.bar;
  const bool blind = gate.statistic == Statistic::kSlope && verdict.minimum_detectable > std::abs(gate.bar);
  if (beyond) {
    verdict.outcome = Outcome::kFail;
  } else if (within && !blind) {
    verdict.outcome = Outcome::kPass;
  } else {
    verdict.note = blind ? "its own noise is larger than the bar" : "the bar is inside the interval";
  }
  return verdict;
}

}  // namespace forebay::lab
