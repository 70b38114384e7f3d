/// The parts of a state that are running sums over the whole sequence, by layer: what an edit in the middle
/// leaves as it was, replaces or corrects.
#pragma once

#include <vector>

#include "model/config.h"
#include "model/relocate.h"
#include "model/state.h"

namespace forebay {

/// Value type. Vectors are per trunk block and empty where the block has no such part.
struct RecurrentCopy {
  std::vector<std::vector<float>> matrices;  // [n_v_heads][k_dim][v_dim]
  std::vector<std::vector<float>> conv;      // inputs before the short convolution
  std::vector<float> ngram_conv;
  std::vector<std::vector<float>> raw_keys;  // rings of raw index keys

  static RecurrentCopy of(SequenceState& state, const ModelConfig& config);

  /// Writes matrices and convolution tails back. The raw keys go with the cells, not with the sums.
  void write_sums(SequenceState& state) const;
  /// Writes the raw keys of the moved cells to where they belong after the move; those of other cells stay.
  /// Raw keys are not rotated.
  void write_raw_keys(SequenceState& state, const ModelConfig& config, const CellMove& move) const;
};

}  // namespace forebay
