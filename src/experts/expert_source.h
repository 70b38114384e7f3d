/// How a layer reaches experts: it asks for the routed set at once and computes on each expert as it becomes
/// available. Where the bytes live, and when they move, is private to the source.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

/// The experts of one request, pinned until it is dropped. Move-only. Confined.
class ExpertLease {
 public:
  class Impl {
   public:
    virtual ~Impl() = default;
    virtual Result<std::vector<ResidentExpert>> take_ready() = 0;
  };

  explicit ExpertLease(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

  /// Those that are in memory and were not taken yet; waits for a read when there are none. Empty once all
  /// were taken. Errors: the read's own; the lease is then only good for dropping.
  Result<std::vector<ResidentExpert>> take_ready() { return impl_->take_ready(); }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Confined: one lease at a time.
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
};

}  // namespace forebay
