#include "session/snapshot_pool.h"

#include <algorithm>
#include <cmath>

namespace forebay {

double usefulness(int64_t before, int64_t at, int64_t next, int64_t end) {
  constexpr double kNear = 64;  // cells: partings nearer to the end than this are not told apart
  const auto distance = [&](int64_t cell) { return static_cast<double>(end - cell) + kNear; };
  return static_cast<double>(at - before) * std::log(distance(at) / distance(std::min(next, end)));
}

bool SnapshotPool::has(int64_t n_cells) const {
  return std::any_of(places_.begin(), places_.end(), [&](const Place& p) { return p.n_cells() == n_cells; });
}

uint64_t SnapshotPool::bytes() const {
  uint64_t sum = 0;
  for (const Place& p : places_) sum += p.bytes();
  return sum;
}

bool SnapshotPool::add(const SequenceState& state, std::vector<float> logits) {
  cut(state.n_cells());
  if (!places_.empty() && places_.back().n_cells() == state.n_cells()) {
    if (places_.back().logits.empty()) places_.back().logits = std::move(logits);
    return true;
  }
  return add(state.snapshot(), std::move(logits));
}

bool SnapshotPool::add(Snapshot snapshot, std::vector<float> logits) {
  const int64_t n_cells = snapshot.n_cells;
  cut(n_cells);
  Place place{std::make_shared<Snapshot>(std::move(snapshot)), std::move(logits), {}};
  const uint64_t bytes = place.bytes();
  if (bytes > max_bytes_) return false;
  while (this->bytes() + bytes > max_bytes_) drop_least_useful(n_cells);
  Result<Reservation> reserved = budget_->reserve(bytes, "snapshots");
  while (!reserved) {
    if (places_.empty()) return false;
    drop_least_useful(n_cells);
    reserved = budget_->reserve(bytes, "snapshots");
  }
  place.reservation = std::move(reserved).value();
  places_.push_back(std::move(place));
  return true;
}

void SnapshotPool::drop_least_useful(int64_t end) {
  size_t least = 0;
  double least_use = INFINITY;
  for (size_t i = 0; i < places_.size(); ++i) {
    const int64_t before = i == 0 ? 0 : places_[i - 1].n_cells();
    const int64_t next = i + 1 == places_.size() ? end : places_[i + 1].n_cells();
    const double use = usefulness(before, places_[i].n_cells(), next, end);
    if (use >= least_use) continue;
    least = i;
    least_use = use;
  }
  places_.erase(places_.begin() + static_cast<ptrdiff_t>(least));
}

const Place* SnapshotPool::nearest(int64_t at_most) const {
  const Place* found = nullptr;
  for (const Place& p : places_)
    if (p.n_cells() <= at_most) found = &p;
  return found;
}

void SnapshotPool::cut(int64_t n_cells) {
  while (!places_.empty() && places_.back().n_cells() > n_cells) places_.pop_back();
}

}  // namespace forebay
