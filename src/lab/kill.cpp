#include "lab/kill.h"

#include <cmath>

#include <fmt/format.h>

namespace forebay::lab {
namespace {

// Steps up to 10 are a transient.
constexpr int64_t kSettled = 11;

constexpr KillTrigger kTriggers[] = {
    {"study.gap", KillReason::kGapHigh, 14.3, kSettled, "above the incumbent's"},
    {"study.val@300", KillReason::kAccuracyLow, 0.65, 300, "below the baseline card"},
    {"study.rn@60", KillReason::kEarlyStop, 0, 60, "the only cut that was planned"},
    {"gap", KillReason::kGapHigh, 5.0, kSettled, "a toy whose view has nothing in common with its sampler"},
    {"dense-kl", KillReason::kDenseKlHigh, 2.0, kSettled, "the policy has left its reference"},
    {"not-finite", KillReason::kNotFinite, 0, 0, "nothing good comes after"},
    {"ratio", KillReason::kRatioMoved, 0, 0, "one optimiser tick per batch: the ratio is 1, exactly"},
    {"stalled", KillReason::kStalled, 900, 0, "15 minutes without a step"},
};

struct Row {
  int64_t step;
  const std::map<std::string, double>& values;
  const double* find(const char* metric) const {
    const auto at = values.find(metric);
    return at == values.end() ? nullptr : &at->second;
  }
};

std::optional<std::string> complaint(const KillTrigger& trigger, const Row& row) {
  const auto above = [&](const char* metric) -> std::optional<std::string> {
    const double* value = row.find(metric);
    if (value == nullptr || !(*value > trigger.limit)) return std::nullopt;
    return fmt::format("{} {:.4g} at step {}, limit {:g}", metric, *value, row.step, trigger.limit);
  };
  switch (trigger.reason) {
    case KillReason::kGapHigh:
      return above("gap");
    case KillReason::kDenseKlHigh:
      return above("kl_dense");
    case KillReason::kRatioMoved:
      return above("ratio_max_dev");
    case KillReason::kNotFinite:
      for (const char* metric : {"loss", "reward", "gap", "kl_dense"})
        if (const double* value = row.find(metric); value != nullptr && !std::isfinite(*value))
          return fmt::format("{} is not finite at step {}", metric, row.step);
      return std::nullopt;
    case KillReason::kEarlyStop:
      return fmt::format("planned at step {}", trigger.step);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string_view name_of(KillReason reason) {
  switch (reason) {
    case KillReason::kGapHigh:
      return "gap-high";
    case KillReason::kAccuracyLow:
      return "accuracy-low";
    case KillReason::kDenseKlHigh:
      return "dense-kl-high";
    case KillReason::kNotFinite:
      return "not-finite";
    case KillReason::kRatioMoved:
      return "ratio-moved";
    case KillReason::kEarlyStop:
      return "early-stop";
    case KillReason::kStalled:
      return "stalled";
    case KillReason::kTimeLimit:
      return "time-limit";
    case KillReason::kBudget:
      return "budget";
  }
  return "unknown";
}

std::span<const KillTrigger> all_triggers() {
  return kTriggers;
}

Result<KillTrigger> trigger_named(std::string_view name) {
  std::string known;
  for (const KillTrigger& trigger : kTriggers) {
    if (trigger.name == name) return trigger;
    known += (known.empty() ? "" : ", ") + std::string(trigger.name);
  }
  return Error{Code::kNotFound, fmt::format("no kill trigger '{}': there are {}", name, known)};
}

std::optional<Kill> check(const KillTrigger& trigger, const Series& run, std::chrono::duration<double> idle) {
  if (trigger.reason == KillReason::kStalled) {
    if (idle.count() <= trigger.limit) return std::nullopt;
    return Kill{trigger.reason, fmt::format("no step for {:.0f} s", idle.count())};
  }
  if (trigger.reason == KillReason::kAccuracyLow) {
    const Series::Points points = run.points("val_accuracy", trigger.step);
    if (points.value.empty() || points.value.front() >= trigger.limit) return std::nullopt;
    return Kill{trigger.reason, fmt::format("val_accuracy {:.4g} at step {:.0f}, limit {:g}",
                                            points.value.front(), points.step.front(), trigger.limit)};
  }
  for (auto row = run.rows().lower_bound(trigger.step); row != run.rows().end(); ++row)
    if (std::optional<std::string> detail = complaint(trigger, {row->first, row->second}))
      return Kill{trigger.reason, *std::move(detail)};
  return std::nullopt;
}

}  // namespace forebay::lab
