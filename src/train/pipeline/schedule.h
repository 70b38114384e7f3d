/// In which order a stage works: one forward, one backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace forebay::train {

struct StageWork {
  enum class Kind { kForward, kBackward };
  Kind kind = Kind::kForward;
  size_t micro_batch = 0;
  bool operator==(const StageWork&) const = default;
};

/// Forwards until the pipeline behind this stage is full, then one backward and one forward in turn, then the
/// backwards that are left. Both kinds go in the order of micro-batches, and at most n_stages - stage of them
/// are in flight. Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.
std::vector<StageWork> one_forward_one_backward(int64_t stage, int64_t n_stages, size_t n_micro_batches);

/// The share of time that stages of equal speed stand idle: (p - 1) / (m + p - 1).
double bubble_share(int64_t n_stages, size_t n_micro_batches);

/// What a stage takes for one micro-batch, codecs included.
struct StageSeconds {
  double forward = 0;
  double backward = 0;
};
/// What a message takes: the link is busy with it, and it arrives the latency after that.
struct HopSeconds {
  double busy = 0;
  double latency = 0;
};

/// How long a step of one_forward_one_backward() takes when stages wait for nothing but each other's
/// messages. Over links that take no time: at most (m - 1) max_s(forward + backward) + sum_s(forward +
/// backward), which equal stages take, then (m + p - 1)(forward + backward).
double predicted_step_s(std::span<const StageSeconds> stages, size_t n_micro_batches,
                        const HopSeconds& forward_hop = {}, const HopSeconds& backward_hop = {});

}  // namespace forebay::train
