/// The places of one timeline to go back to, in memory, under a byte budget.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/memory_budget.h"
#include "model/state.h"

namespace forebay {

/// One place. The rows before it are still in the sequence; `logits` are those of its last token, or none.
struct Place {
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<float> logits;
  Reservation reservation;

  int64_t n_cells() const { return snapshot->n_cells; }
  uint64_t bytes() const { return snapshot->bytes() + logits.size() * sizeof(float); }
};

/// Confined.
class SnapshotPool {
 public:
  /// Whatever the bytes, at most `max_bytes` and what `budget` has to give are kept. budget outlives the
  /// pool.
  SnapshotPool(uint64_t max_bytes, MemoryBudget& budget) : max_bytes_(max_bytes), budget_(&budget) {}

  /// Keeps a place beyond all others, or its logits where it is known already; drops the least useful ones
  /// until it fits. False when it does not fit by itself.
  bool add(const SequenceState& state, std::vector<float> logits);
  /// The same for a snapshot that was taken already, of a sequence that has its cells.
  bool add(Snapshot snapshot, std::vector<float> logits);
  /// The last place at or before cell `at_most`, or null. Valid until the pool changes.
  const Place* nearest(int64_t at_most) const;
  /// Forgets what lies beyond n_cells: the sequence was cut there and its rows are written anew.
  void cut(int64_t n_cells);
  void clear() { places_.clear(); }

  bool has(int64_t n_cells) const;
  const std::vector<Place>& places() const { return places_; }  // ascending
  uint64_t bytes() const;

 private:
  void drop_least_useful(int64_t end);

  uint64_t max_bytes_;
  MemoryBudget* budget_;
  std::vector<Place> places_;
};

/// How much reading a place is expected to save: the cells from the place before it, times how likely the
/// next prompt parts from this one between it and the next place. Partings are taken to be as likely in every
/// doubling of the distance from the end, so that places thin out away from it.
double usefulness(int64_t before, int64_t at, int64_t next, int64_t end);

}  // namespace forebay
