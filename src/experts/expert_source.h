/// How a layer reaches experts: it asks for the routed set at once and computes on each expert as it becomes
/// available. Where the bytes live, and when they move, is private to the source.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <utility>

#include "forebay/result.h"

#include "experts/route_observer.h"
#include "tensor/view.h"

namespace forebay {

struct ExpertId {
  int32_t block = 0;
  int32_t index = 0;

  auto operator<=>(const ExpertId&) const = default;
};

/// An expert in memory. The views are valid while the lease that gave it lives.
struct ResidentExpert {
  int32_t index = 0;
  MatrixView gate, up, down;
};

class ExpertLease;

/// Confined: one lease at a time, which the source keeps the contents of: a request allocates nothing.
class ExpertSource : public RouteObserver {
 public:
  /// Starts making the experts available; all reads are under way when it returns. `experts` are distinct,
  /// and at most max_experts(block). Errors: kOutOfMemory, kIo.
  virtual Result<ExpertLease> request(int block, std::span<const int32_t> experts) = 0;
  /// How many experts of a block one request may name: callers with more work in waves.
  virtual int64_t max_experts(int block) const = 0;

  /// Hints that these experts, most wanted first, will probably be requested soon. Changes speed only.
  virtual void prefetch(int /*block*/, std::span<const int32_t> /*experts*/) {}
  /// How many a hint may usefully name now; 0: do not bother.
  virtual int64_t max_prefetch(int /*block*/) const { return 0; }
  /// Whether a request would find it without reading: a function of the requests so far.
  virtual bool resident(ExpertId) const { return true; }
  /// A row's routing, before the request it belongs to.
  void on_route(const RouteEvent& /*event*/) override {}

 protected:
  friend class ExpertLease;
  virtual Result<std::span<const ResidentExpert>> take_ready() = 0;
  virtual void end_lease() = 0;
};

/// The experts of one request, pinned until it is dropped. Move-only. Confined; the source outlives it.
class ExpertLease {
 public:
  explicit ExpertLease(ExpertSource& source) : source_(&source) {}
  ExpertLease(ExpertLease&& other) noexcept : source_(std::exchange(other.source_, nullptr)) {}
  ExpertLease& operator=(ExpertLease&&) = delete;
  ~ExpertLease() {
    if (source_ != nullptr) source_->end_lease();
  }

  /// Those that are in memory and were not taken yet; waits for a read when there are none. Empty once all
  /// were taken. Borrowed until the next call. Errors: the read's own; the lease is then only good for
  /// dropping.
  Result<std::span<const ResidentExpert>> take_ready() { return source_->take_ready(); }

 private:
  ExpertSource* source_;
};

}  // namespace forebay
