/// How the sampler gets the policy's weights from the stages: all of them, or what bf16 sees of their
/// changes.
#pragma once

#include <cstdint>
#include <vector>

#include "forebay/result.h"

#include "train/anchor/delta.h"
#include "train/grpo/sampler.h"
#include "train/grpo/settings.h"
#include "train/grpo/team.h"
#include "train/nets/net.h"

namespace forebay::train {

/// Confined; everything but has_stale() and held() is collective. `sampler` is the leader's, null elsewhere.
class WeightFeed {
 public:
  WeightFeed(const Net& policy, const GrpoSettings& settings, Team& team)
      : policy_(policy), settings_(settings), team_(team) {}

  /// What step `at` draws with: the policy after a step that refreshes, rounded if so set. `n_done` steps are
  /// in the policy.
  Result<void> for_drawing(int64_t n_done, Sampler* sampler);
  /// The policy as it is, rounded if so set.
  Result<void> for_validation(int64_t n_done, Sampler* sampler);
  /// The policy as it is, or (stale) as the last drawing had it, f32 in both cases.
  enum class Exactly { kPolicy, kHeld };
  Result<void> exact(Exactly which, int64_t n_done, Sampler* sampler);

  /// This process's share of what for_drawing() gave, before rounding; and whether that is another model than
  /// the policy is now.
  const NamedTensors& held() const { return held_; }
  bool has_stale(int64_t n_done) const { return held_step_ != n_done; }
  int64_t held_step() const { return held_step_; }
  void restore(NamedTensors held, int64_t held_step);

  struct Sent {
    int64_t bytes = 0;  // to the sampler, since this was last asked, from all processes; at the leader
    int64_t n_changed = 0, n_elements = 0;
  };
  Sent take_sent() { return std::exchange(sent_, {}); }

 private:
  Result<void> send(const NamedTensors& held, int64_t step, bool rounded, Sampler* sampler);
  Result<NamedTensors> collect_deltas(const NamedTensors& mine);

  const Net& policy_;
  const GrpoSettings settings_;
  Team& team_;
  NamedTensors held_;
  int64_t held_step_ = -1;
  // What the sampler has now.
  int64_t loaded_step_ = -1;
  bool loaded_rounded_ = false;
  // The chain of deltas: what was sent last, and at the leader the copies that they made, by rank.
  Bf16Tensors base_;
  uint64_t n_deltas_ = 0;
  std::vector<NamedTensors> copies_;
  Sent sent_;
};

}  // namespace forebay::train
