/// Small traces for tests, by hand or synthetic.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "replay/route_log.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"
#include "support/synthetic_routes.h"

namespace forebay::testing {

/// Writes rows and loads what was written.
class LogBuilder {
 public:
  LogBuilder(int n_blocks, int n_experts, int n_used, std::vector<uint64_t> expert_bytes = {}) {
    TraceHeader header{"by hand", n_experts, n_used, std::move(expert_bytes), {}};
    if (header.expert_bytes.empty()) header.expert_bytes.assign(n_blocks, 100);
    header.slot_bytes = header.expert_bytes;
    n_experts_ = n_experts;
    n_used_ = n_used;
    writer_ = TraceWriter::create(storage_, "t", std::move(header)).value();
  }

  RouteObserver& observer() { return *writer_; }

  /// A row whose experts are, best first, those of `order` and then the others by number; a rank is worth
  /// `gap`.
  LogBuilder& row(int block, const std::vector<int32_t>& order, RoutePhase phase = RoutePhase::kDecode,
                  float gap = 1) {
    std::vector<float> logits(n_experts_, 1);
    for (size_t r = 0; r < order.size(); ++r) logits[order[r]] = 0;
    std::vector<int32_t> ranked = order;
    for (int32_t e = 0; e < n_experts_; ++e)
      if (logits[e] == 1) ranked.push_back(e);
    for (size_t r = 0; r < ranked.size(); ++r) logits[ranked[r]] = -gap * static_cast<float>(r);
    ranked.resize(n_used_);
    writer_->on_route({.block = block, .token = 0, .phase = phase, .logits_E = logits, .chosen = ranked});
    return *this;
  }

  RouteLog load(const std::vector<ExpertId>& pruned = {}) {
    EXPECT_OK(writer_->finish());
    Result<RouteLog> log = load_route_log(storage_, "t", pruned);
    EXPECT_OK(log);
    return std::move(log).value();
  }

 private:
  MemoryStorage storage_;
  std::unique_ptr<TraceWriter> writer_;
  int n_experts_ = 0, n_used_ = 0;
};

/// Prompts and tokens; every `draft_every`-th token is followed by a drafted row.
inline RouteLog synthetic_log(const SyntheticShape& shape, int n_tokens, int prompt = 0,
                              int draft_every = 0) {
  LogBuilder builder(shape.n_blocks, shape.n_experts, shape.n_used);
  SyntheticRoutes routes(shape);
  if (prompt > 0) routes.window(RoutePhase::kPrefill, prompt, builder.observer());
  for (int t = 0; t < n_tokens; ++t) {
    routes.window(RoutePhase::kDecode, 1, builder.observer());
    if (draft_every > 0 && t % draft_every == 0)
      builder.observer().on_route(routes.row_of(shape.n_blocks - 1, t, RoutePhase::kDraft));
  }
  return builder.load();
}

}  // namespace forebay::testing
