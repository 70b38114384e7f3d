#include "train/grpo/advantages.h"

#include <algorithm>
#include <cmath>

#include "core/ensure.h"

namespace forebay::train {
namespace {

constexpr double kStdFloor = 1e-4;

}  // namespace

Advantages group_advantages(std::span<const std::optional<double>> rewards, int64_t group_size,
                            const AdvantageOptions& options) {
  const auto size = static_cast<size_t>(group_size);
  ENSURE(size > 0 && rewards.size() % size == 0, "rewards in whole groups");
  Advantages result;
  result.values.assign(rewards.size(), 0);
  result.kept.assign(rewards.size(), false);
  for (size_t first = 0; first < rewards.size(); first += size) {
    // In order of value, so that the sums do not hang on the order of the answers.
    std::vector<double> sorted;
    for (size_t i = first; i < first + size; ++i)
      if (rewards[i]) sorted.push_back(*rewards[i]);
    result.n_failed += static_cast<int64_t>(size - sorted.size());
    if (sorted.empty()) continue;
    std::ranges::sort(sorted);
    const bool equal = sorted.front() == sorted.back();
    if (equal) ++result.n_equal_groups;
    const auto n = static_cast<double>(sorted.size());
    double mean = 0, squares = 0;
    for (const double r : sorted) mean += r / n;
    for (const double r : sorted) squares += (r - mean) * (r - mean);
    const double scale = options.divide_by_std && !equal ? std::sqrt(squares / (n - 1)) + kStdFloor : 1;
    for (size_t i = first; i < first + size; ++i) {
      if (!rewards[i]) continue;
      result.kept[i] = !(equal && options.drop_equal);
      if (!equal) result.values[i] = (*rewards[i] - mean) / scale;
    }
  }
  return result;
}

}  // namespace forebay::train
