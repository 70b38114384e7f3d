/// How much better each answer was than the others to the same prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace forebay::train {

struct AdvantageOptions {
  bool divide_by_std = true;  // false: Dr. GRPO, arXiv:2503.20783
  bool drop_equal = true;     // a group whose answers were all as good as each other teaches nothing
};

struct Advantages {
  std::vector<double> values;  // 0 where not kept
  std::vector<bool> kept;      // has a reward, and its group is not dropped
  int64_t n_equal_groups = 0;  // all rewards of the group the same
  int64_t n_failed = 0;        // rollouts without a reward
};

/// Rewards are [groups][group_size], flat; none: that rollout failed and is as if it had never been drawn.
/// A_i = (R_i - mean) / (std + 1e-4), of the group's rewards that exist, std with n - 1 below; exactly 0
/// where all are equal, and for a group of one. Source: Shao et al. 2024, arXiv:2402.03300.
Advantages group_advantages(std::span<const std::optional<double>> rewards, int64_t group_size,
                            const AdvantageOptions& options);

}  // namespace forebay::train
