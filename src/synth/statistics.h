/// How large weights are, so that activations neither explode nor vanish, and what routers look for, so that
/// experts are used as in a trained model: some much more than others, and often again by the next tokens.
///
/// The residual is thought of as a sum of parts of known size, in units of the embedding's square mean:
///   constant   every embedding has the same mean, so the direction of all ones is the same for every token:
///              routers read a bias from it, their experts' popularity
///   slow       what the mixers write: gated delta states and attention are averages over past tokens
///   fast       the rest of the embedding, and what the experts write: new with every token
/// A router's row is a random direction, which sees slow and fast parts by their share, plus its expert's
/// popularity times the constant direction. The skew sets that popularity, the locality how much mixers
/// write. Other rows sum to zero, or to a wanted constant: the constant direction gives them a bias.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "convert/checkpoint_config.h"
#include "synth/deck.h"

namespace forebay::synth {

struct RoutingStatistics {
  /// Deviation of the experts' constant logits, relative to what changes with the tokens. 0: all experts are
  /// used alike.
  double skew = 0.5;
  /// Share of the slow part in what changes with the tokens, at the last block; [0, 0.95].
  double locality = 0.9;
};

/// Deviations and means of the weights of one model. A small value.
class Statistics {
 public:
  Statistics(const convert::CheckpointConfig& config, const RoutingStatistics& routing);

  Normal embedding() const;
  Normal output_head() const;
  /// A projection of what a sub-block reads, whose outputs have square mean gain^2.
  Normal read(double gain = 1) const;
  /// As read(), of what the block's mixer reads, and a constant is added to the outputs.
  Normal biased_read(uint64_t block, double bias, double gain) const;
  /// A mixer's last projection, from rows of `width` values of square mean rms^2.
  Normal mixer_output(uint64_t block, uint64_t width, double rms) const;
  /// The experts' last projection; `width` values of silu(gate) * up.
  Normal expert_output(uint64_t width) const;
  /// Row `expert` of a block's router.
  void router_row(uint64_t block, Key key, uint64_t expert, std::span<float> out) const;

 private:
  double mixer_share(uint64_t block) const;
  double expert_share() const;
  /// Share of the constant part in what the block's mixer, or its router, reads.
  double constant_share(uint64_t block, bool after_mixer) const;

  RoutingStatistics routing_;
  uint64_t n_blocks_, d_model_;
  bool has_shared_expert_;
  double input_rms_;
  double mixers_ = 0, experts_ = 0;  // what all blocks write
};

}  // namespace forebay::synth
