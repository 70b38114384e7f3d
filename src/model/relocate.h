/// Cached rows at other positions, for an edit before them: keys are turned by the shift in their rotated
/// dims, everything else is moved as it is. docs/reuse.md.
#pragma once

#include <cstdint>
#include <vector>

#include "forebay/result.h"

#include "model/config.h"
#include "model/state.h"

namespace forebay {

/// Cells [first, first + n) go to [first + delta, first + n + delta). The two may overlap, either way round.
struct CellMove {
  int64_t first = 0;
  int64_t n = 0;
  int64_t delta = 0;
};

/// Shifts must be a multiple of this many cells, or every index block would mix other cells than before: the
/// model's index block, 1 where all attention is dense.
int64_t shift_granule(const ModelConfig& config);

/// The angles by which a shift turns a key: cos and sin of delta * theta^(-2i / n_rot), in f64.
class KeyTurn {
 public:
  KeyTurn(const AttentionConfig& attention, int64_t delta);
  /// Turns the first n_rot values of one head in place, products in f64, one rounding at the end.
  void apply(float* head) const;

 private:
  RopePairs pairs_;
  std::vector<double> cos_, sin_;
};

/// Moves K, V and the pooled keys of the complete index blocks inside the move, in every attention layer and
/// in the draft head (there, the cells it has). Blocks with a cell outside keep what they held: the caller
/// computes the cells around them again. Neither n_cells() nor anything that is a running sum changes.
/// Errors: kInvalidArgument, before anything moves, when cells lie outside the state's context or written
/// rows, or the shift is not a multiple of shift_granule().
Result<void> relocate_rows(SequenceState& state, const ModelConfig& config, const CellMove& move);

}  // namespace forebay
