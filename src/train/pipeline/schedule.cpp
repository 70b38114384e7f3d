#include "train/pipeline/schedule.h"

#include <algorithm>

#include "core/ensure.h"

namespace forebay::train {

std::vector<StageWork> one_forward_one_backward(int64_t stage, int64_t n_stages, size_t n_micro_batches) {
  using Kind = StageWork::Kind;
  const size_t n_ahead = std::min(n_micro_batches, static_cast<size_t>(n_stages - 1 - stage));
  std::vector<StageWork> order;
  for (size_t i = 0; i < n_ahead; ++i) order.push_back({Kind::kForward, i});
  for (size_t i = 0; i < n_micro_batches; ++i) {
    if (i + n_ahead < n_micro_batches) order.push_back({Kind::kForward, i + n_ahead});
    order.push_back({Kind::kBackward, i});
  }
  return order;
}

double bubble_share(int64_t n_stages, size_t n_micro_batches) {
  return static_cast<double>(n_stages - 1) /
         (static_cast<double>(n_micro_batches) + static_cast<double>(n_stages - 1));
}

namespace {

/// One direction of one boundary: messages in the order in which they are handed over.
class Hop {
 public:
  Hop(const HopSeconds& seconds) : seconds_(seconds) {}
  void hand_over(double now) {
    free_at_ = std::max(now, free_at_) + seconds_.busy;
    arrivals_.push_back(free_at_ + seconds_.latency);
  }
  /// When message i is there, if it has been handed over.
  const double* arrival(size_t i) const { return i < arrivals_.size() ? &arrivals_[i] : nullptr; }

 private:
  HopSeconds seconds_;
  double free_at_ = 0;
  std::vector<double> arrivals_;
};

}  // namespace

double predicted_step_s(std::span<const StageSeconds> stages, size_t n_micro_batches,
                        const HopSeconds& forward_hop, const HopSeconds& backward_hop) {
  const size_t n = stages.size();
  std::vector<Hop> up(n, forward_hop), down(n, backward_hop);  // from stage s to s + 1, from s to s - 1
  std::vector<std::vector<StageWork>> order;
  for (size_t s = 0; s < n; ++s)
    order.push_back(
        one_forward_one_backward(static_cast<int64_t>(s), static_cast<int64_t>(n), n_micro_batches));
  std::vector<size_t> next(n, 0);
  std::vector<double> now(n, 0);
  // Each round does at least the one piece of work that waits for nothing unfinished.
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < n; ++s)
      while (next[s] < order[s].size()) {
        const StageWork& work = order[s][next[s]];
        const bool is_forward = work.kind == StageWork::Kind::kForward;
        const bool has_input = is_forward ? s > 0 : s + 1 < n;
        if (has_input) {
          const double* const arrival = (is_forward ? up[s - 1] : down[s + 1]).arrival(work.micro_batch);
          if (arrival == nullptr) break;
          now[s] = std::max(now[s], *arrival);
        }
        now[s] += is_forward ? stages[s].forward : stages[s].backward;
        if (is_forward && s + 1 < n) up[s].hand_over(now[s]);
        if (!is_forward && s > 0) down[s].hand_over(now[s]);
        ++next[s];
        moved = true;
      }
  }
  for (size_t s = 0; s < n; ++s) ENSURE(next[s] == order[s].size(), "a schedule that waits for itself");
  return n == 0 ? 0 : *std::max_element(now.begin(), now.end());
}

}  // namespace forebay::train
