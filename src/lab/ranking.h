/// Which arm is the most stable, from numbers that no codec can flatter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/series.h"

namespace forebay::lab {

/// A metric that may rank. Those that read the training view through a codec (its KL, its entropy) cannot be
/// made into one: they rose and fell by factors of hundreds while the policy did not move.
class DenseMetric {
 public:
  /// Nothing for a metric that may not rank, or that nobody knows.
  static std::optional<DenseMetric> named(std::string_view metric);
  std::string_view name() const { return name_; }

  static DenseMetric gap();  // sampler's log-probs (without codec) minus the trainer's
  static DenseMetric gradient_norm();
  static DenseMetric dense_kl();
  static DenseMetric reward();
  static DenseMetric accuracy();

 private:
  explicit DenseMetric(std::string_view name) : name_(name) {}
  std::string_view name_;
};

struct Arm {
  std::string name;
  bool is_reference = false;
  bool collapsed = false;  // killed, failed, or not finite
  const Series* series = nullptr;
};

struct RankingRules {
  int64_t horizon = 0;         // steps an arm must have; comparisons end there
  int64_t settled = 100;       // the step whose level the end is compared with; at most half of the horizon
  double wire_bits = 0;        // most bits per token and leg; 0: any
  double dense_kl_veto = 1.5;  // times the control's, at the end
};

enum class Standing { kRanked, kReference, kUnproven, kCollapsed, kIneligible, kVetoed };
std::string_view name_of(Standing standing);

struct RankedArm {
  std::string name;
  Standing standing = Standing::kUnproven;
  std::string why;            // of a standing that is not kRanked
  double gap_drift = 0;       // level at the end over the level at `settled`
  double gradient_drift = 0;  // median of the last fifth over that of the first
  double gradient_max = 0;
  double dense_kl = 0;   // mean of the last fifth
  double objective = 0;  // mean of the last fifth
  int64_t steps = 0;
};

/// In order: ranked arms by gap drift (then gradient drift), then the others. Everything is measured within
/// the horizon; an arm without so many steps is unproven, not beaten. NaN: not measured.
std::vector<RankedArm> rank(std::span<const Arm> arms, const Series* control, const RankingRules& rules,
                            DenseMetric objective);

}  // namespace forebay::lab
