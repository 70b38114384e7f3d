/// An edit in the middle of a sequence: [A B C] becomes [A B' C]. C's rows are moved instead of computed
/// again; what cannot be moved (the running sums of the recurrent layers) is kept, corrected or computed, by
/// choice. Changes results unless everything is computed. docs/reuse.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "model/model.h"
#include "model/recurrence_log.h"
#include "model/recurrent_copy.h"
#include "reuse/staleness.h"

namespace forebay {

/// The spans of an edit, borrowed. `inserted` includes its pads: |B'| - |B| must be a multiple of
/// shift_granule().
struct Edit {
  std::span<const int32_t> prefix;    // A
  std::span<const int32_t> removed;   // B
  std::span<const int32_t> inserted;  // B'
  std::span<const int32_t> suffix;    // C, up to the end of the state

  int64_t delta() const {
    return static_cast<int64_t>(inserted.size()) - static_cast<int64_t>(removed.size());
  }
};

/// How many tokens B' lacks for its shift to be possible.
int64_t n_pads(const ModelConfig& config, int64_t n_removed, int64_t n_inserted);

/// The recurrent layers' memory after the edit.
enum class Recurrent {
  kKeep,   // of A B C: has read B, never B'
  kLossy,  // of A B' C[:J]: has not read the rest of C
  kExact,  // of a true A B' C, handed in: says what is the moved rows' own fault
};

struct EditOptions {
  Recurrent recurrent = Recurrent::kKeep;
  /// At least so many of C's first tokens are computed again; rounded up to where an index block ends. More
  /// costs their prefill. As many as C has: with kLossy, everything is computed, bit for bit.
  int64_t junction = 0;
  /// With kKeep: adds to the heads of long memory what B' would have left in them, less what B did. Costs a
  /// pass of those heads' recurrences over C, and B's prefill where no snapshot after it is at hand.
  bool transport = false;
  /// With kKeep: above this bound on the share of the recurrent state that is stale (Staleness, 0 to 1)
  /// nothing is kept: the state is left after A B' C[:J], to be read on from.
  double max_staleness = 1e30;
};

/// What was known before the edit, borrowed.
struct EditSource {
  const Snapshot* start = nullptr;          // at or before the end of A
  const Snapshot* after_removed = nullptr;  // of A B, or of no more of C than J; null: B is read again if it
                                            // must be
  const RecurrenceLog* log = nullptr;       // covers C; for transport, and for staleness
  const RecurrentCopy* exact = nullptr;     // for kExact
};

struct EditReport {
  bool refused = false;       // too stale: C[J:] is not in the state
  int64_t n_moved = 0;        // cells
  int64_t n_prefilled = 0;    // tokens computed, replays included
  int64_t n_transported = 0;  // heads
  double seconds = 0;
  double transport_seconds = 0;        // of those, in the recurrence alone
  std::optional<Staleness> staleness;  // with a log that covers C; of the state before any transport
};

/// Called between windows with the tokens done and to do.
using EditProgress = std::function<void(int64_t done, int64_t total)>;

/// The junction after rounding: where C's moved part begins, counted from its first token.
int64_t junction_length(const ModelConfig& config, const Edit& edit, int64_t wanted);

/// `state` holds A B C; afterwards it holds A B' C, with no logits: C is followed by more. `observer` sees
/// what is computed at its new place; it must not be the source's log. Errors: kInvalidArgument before
/// anything changes; kCancelled, when the state is that of source.start; those of the forward pass, when it
/// is empty.
Result<EditReport> apply_edit(Model& model, SequenceState& state, const Edit& edit,
                              const EditOptions& options, const EditSource& source,
                              RecurrenceObserver* observer = nullptr, const EditProgress& progress = {},
                              std::stop_token stop = {});

}  // namespace forebay
