/// The processes of a GRPO run and what they tell each other: rank 0 draws, records and saves, the last rank
/// has the head, each one trains a stage.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

#include "core/world.h"
#include "train/comm/circuits.h"
#include "train/nets/files.h"

namespace forebay::train {

/// Confined. Everything but rank(), size(), leads() and has_head() is collective, and costs nothing where
/// there is one process. Tensors and batches go over the anchor's circuit, few bytes over control. Errors:
/// those of the circuits.
class Team {
 public:
  /// One process.
  Team() = default;
  /// Meets the others. Errors: those of connect_circuits().
  static Result<std::unique_ptr<Team>> meet(const World& world, const CommOptions& options);

  int rank() const { return circuits_ ? circuits_->control->rank() : 0; }
  int size() const { return circuits_ ? circuits_->control->size() : 1; }
  bool leads() const { return rank() == 0; }
  int head_rank() const { return size() - 1; }
  bool has_head() const { return rank() == head_rank(); }
  /// Null where there is one process.
  Comm* pipe() { return circuits_ ? circuits_->pipe.get() : nullptr; }
  Comm* anchor() { return circuits_ ? circuits_->anchor.get() : nullptr; }

  /// Whether anyone said yes.
  Result<bool> any(std::string_view question, bool mine);
  /// What `root` has; `bytes` of the others play no part.
  Result<Bytes> share(Bytes bytes, int root);
  /// Everyone's numbers become the root's. Of one shape and type everywhere, on the CPU.
  Result<void> share(torch::Tensor& numbers, int root);
  /// By rank, at the leader; empty elsewhere.
  Result<std::vector<Bytes>> bring(Bytes mine);
  /// All tensors of all ranks, on the CPU, at the leader; empty elsewhere. A name that several have is the
  /// first one's.
  Result<NamedTensors> collect(const NamedTensors& mine);
  /// Those of the leader's that this rank names. Errors: also kNotFound for a name that it has not.
  Result<NamedTensors> hand_out(const NamedTensors& all, const std::vector<std::string>& names);

  /// Tells everyone, unless they know, and says who it was: "rank 1: models/a.gguf: not found".
  Error failed(const Error& error);
  /// The end, as agreed.
  Result<void> leave();

 private:
  std::optional<Circuits> circuits_;
  uint64_t n_sent_ = 0;  // tags: the same calls in the same order everywhere
};

}  // namespace forebay::train
