/// The slow circuit: an average of dense gradients, of which only the signs travel, once in many ticks.
/// Source: signSGD with momentum, Bernstein et al. 2018, arXiv:1802.04434.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

namespace forebay::train {

struct AnchorOptions {
  double mu = 0.9;     // m <- mu m + (1 - mu) g: higher remembers longer
  int64_t every = 20;  // ticks from fire to fire
  double step = 1e-4;  // theta <- theta - step sign(m)
};

/// What happened, for the invariants that a run asserts.
struct AnchorCounts {
  int64_t ticks = 0;
  int64_t fires = 0;           // == ticks / every
  int64_t payload_bytes = 0;   // sum over the fires
  int64_t refused_writes = 0;  // fires that were tried when none was due, or with bytes that do not fit
};

/// Confined. Every process of the circuit holds one over the same parameters in the same order; one of them
/// (or each, over its own) has the gradients. After each optimiser tick: tick(); when due(): the owner's
/// signs() travel, and everyone, the owner too, calls fire() with them. Parameters change nowhere else.
class SignAnchor {
 public:
  /// `parameters` are f32 and changed in place. `masks` are bool, of the same shapes, true where signs
  /// travel; an undefined one, or an empty list, means everywhere. Errors: kInvalidArgument.
  static Result<SignAnchor> make(std::vector<torch::Tensor> parameters, std::vector<torch::Tensor> masks,
                                 const AnchorOptions& options);

  /// The owner's tick, with the gradients of a dense replay of what was trained on, one per parameter.
  /// Errors: kInvalidArgument for a gradient that is not finite; the average is then as before, and the tick
  /// is not counted.
  Result<void> tick(std::span<const torch::Tensor> gradients);
  /// A receiver's.
  void tick();
  /// Whether the last tick is one to fire after, and has not yet.
  bool due() const { return counts_.ticks > 0 && counts_.ticks % options_.every == 0 && !fired_; }

  /// Coordinates whose sign travels.
  int64_t n_signs() const { return n_signs_; }
  /// ceil(n_signs / 8).
  int64_t payload_bytes() const { return (n_signs_ + 7) / 8; }
  /// One bit per coordinate, parameter after parameter, from the lowest bit; 1 is plus, and so is the sign of
  /// zero. Unused bits are 0.
  std::vector<uint8_t> signs() const;
  /// Errors: kInvalidArgument when no fire is due or the payload is not payload_bytes() long with its unused
  /// bits 0; nothing has changed then.
  Result<void> fire(std::span<const uint8_t> payload);

  const AnchorCounts& counts() const { return counts_; }

  /// One per parameter, as they are.
  const std::vector<torch::Tensor>& averages() const { return average_; }
  /// What averages() and counts() were when no fire was due. Errors: kCorrupt for other shapes.
  Result<void> restore(std::span<const torch::Tensor> averages, const AnchorCounts& counts);

  /// All that it remembers, for checkpoints. load() refuses another number of parameters or other shapes.
  void save(torch::serialize::OutputArchive& archive) const;
  Result<void> load(torch::serialize::InputArchive& archive);

 private:
  SignAnchor() = default;

  AnchorOptions options_;
  std::vector<torch::Tensor> parameters_, masks_;  // a mask may be undefined
  std::vector<torch::Tensor> average_;             // f32, where the parameter is
  int64_t n_signs_ = 0;
  bool fired_ = false;  // at this tick
  AnchorCounts counts_;
};

}  // namespace forebay::train
