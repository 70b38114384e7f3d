/// How much of what was read before a span of cells is still in the recurrent state after it.
///
/// Per value head, over the cells of C:  |S_ABC - S_AB'C|_F <= exp(sum log g) |S_AB - S_AB'|_F  for the
/// direct term, where both runs see the same k, v, b, g: |I - b k k^T| = 1 for unit k and b in (0, 1).
#pragma once

#include <cstdint>
#include <vector>

#include "model/recurrence_log.h"
#include "model/recurrent_copy.h"

namespace forebay {

/// A head with a larger sum of log g over C remembers what came before C: exp(-7) is a thousandth.
inline constexpr double kLongMemory = -7;

struct HeadStaleness {
  int block = 0;
  int head = 0;
  double sum_log_decay = 0;  // over C, nats
  double norm = 0;           // |S_ABC|_F
  double difference = 0;     // |S_AB - S_AB'|_F; taken to be |S_AB'|_F where S_AB is not known

  double bound() const;  // of the direct term after C
  /// Tokens over which a memory halves, at C's mean decay. Infinite without decay.
  double half_life(int64_t n_cells) const;
};

struct Staleness {
  std::vector<HeadStaleness> heads;
  int64_t n_cells = 0;      // |C|
  bool is_estimate = true;  // S_AB is not known

  /// The share of heads whose sum of log g is above kLongMemory, 0 to 1; and the share of the state's energy
  /// (squares of all entries) that is in them. 0 for a model without recurrent layers.
  double share_of_heads() const;
  double share_of_energy() const;
  /// The bounds of all heads over the norm of the whole state.
  double relative_bound() const;
};

/// The log must cover cells [first, end), C. `now` is the state after them; `before` and `instead` are the
/// states after A B and after A B'; before is null where it is not known.
Staleness measure_staleness(const ModelConfig& config, const RecurrenceLog& log, int64_t first, int64_t end,
                            const RecurrentCopy& now, const RecurrentCopy* before,
                            const RecurrentCopy& instead);

}  // namespace forebay
