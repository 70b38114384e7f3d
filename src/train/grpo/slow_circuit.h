/// The anchor inside a run: signs of an average of dense gradients, each stage's over the circuit of its own,
/// and the masks that say which of them travel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/anchor/sign_anchor.h"
#include "train/grpo/settings.h"
#include "train/grpo/team.h"
#include "train/nets/net.h"
#include "train/wire/ledger.h"

namespace forebay::train {

/// Confined. Everything but state(), counts() and mask_hash() is collective.
class SlowCircuit {
 public:
  /// Changes the parameters of `policy`; masks are made from `base`, of the same shape, and `whole_base` at
  /// the leader has all of it. Errors: kInternal naming rank and tensor where the leader's mask is another
  /// one than the owner's.
  static Result<std::unique_ptr<SlowCircuit>> create(Net& policy, const Net& base,
                                                     const NamedTensors& whole_base,
                                                     const GrpoSettings& settings, Team& team);

  /// After an optimiser's tick: `gradients` are of a dense replay, one per parameter in the order of the net,
  /// undefined for none. Whether it fired. Each process applies what came over the circuit, its own too.
  Result<bool> tick(const std::vector<torch::Tensor>& gradients, WireLedger& wire);

  AnchorCounts counts() const { return own_.anchor->counts(); }
  /// At the leader: 64 digits over all masks by name; empty without masks.
  const std::string& mask_hash() const { return mask_hash_; }
  /// This process's averages, by parameter.
  NamedTensors state() const;
  Result<void> restore(const NamedTensors& state, const AnchorCounts& counts);

 private:
  explicit SlowCircuit(Team& team) : team_(team) {}
  Result<std::vector<torch::Tensor>> make_masks(const Net& base, const NamedTensors& whole_base,
                                                const SafeMaskOptions& options);

  /// Of some of the parameters, as numbers of the net's.
  struct Part {
    std::vector<size_t> indices;
    std::optional<SignAnchor> anchor;
  };
  Result<void> tick(Part& part, const std::vector<torch::Tensor>& gradients);

  Team& team_;
  std::vector<std::string> names_;
  // What this stage speaks for, and a copy of another one's, whose signs are the same and travel from there.
  Part own_, copy_;
  std::string mask_hash_;
};

}  // namespace forebay::train
