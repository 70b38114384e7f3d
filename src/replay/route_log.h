/// A trace as flat arrays, which many threads replay at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "forebay/result.h"

#include "experts/expert_source.h"
#include "trace/trace.h"

namespace forebay {

constexpr uint32_t kNeverAgain = UINT32_MAX;

/// Experts that a window asked a block for, together.
struct LoggedRequest {
  uint32_t first_row = 0;
  uint32_t n_rows = 0;
  uint32_t first_use = 0;
  uint32_t n_uses = 0;
  uint32_t n_tokens_before = 0;  // of the trace, when its window began; drafts not counted
  uint32_t new_tokens = 0;       // at the first block of a window that is no draft
  uint32_t n_exact = 0;  // of a prompt: its last rows, which are routed exactly where prompts are biased
  int32_t block = 0;
  RoutePhase phase = RoutePhase::kDecode;
};

/// Prompt tokens before the answer that cache-aware routing leaves alone.
inline constexpr uint32_t kExactPromptTail = 32;

/// Immutable once loaded.
struct RouteLog {
  TraceHeader header;
  bool complete = false;  // the trace had its end mark
  uint64_t n_tokens = 0;
  uint64_t n_biased_rows = 0;  // did not choose the router's first: the traced run was biased itself

  std::vector<LoggedRequest> requests;
  // By row. Of its room for n_candidates the first row_candidates[row] are used.
  std::vector<uint16_t> ids, gaps;
  std::vector<uint16_t> log_sums;
  std::vector<uint8_t> row_candidates;
  // By use: a request's distinct experts under exact routing, those with most rows first, and the next
  // request that names the same one.
  std::vector<uint16_t> uses;
  std::vector<uint32_t> next_use;

  uint64_t n_rows() const { return log_sums.size(); }
  RouteCandidates candidates(uint64_t row) const {
    const size_t first = row * header.n_candidates();
    return {0, log_sums[row], std::span(ids).subspan(first, row_candidates[row]),
            std::span(gaps).subspan(first, row_candidates[row])};
  }
  /// How many of n_used this row lacks, because fewer candidates are left.
  uint32_t n_forced(uint64_t row) const {
    return static_cast<uint32_t>(std::max(0, header.n_used - int{row_candidates[row]}));
  }
  /// Of all experts of all blocks.
  uint64_t total_slot_bytes() const;
  uint64_t largest_slot_bytes() const;
  int n_blocks_with_experts() const;
};

/// `pruned` experts are left out as if the model lacked them. Errors: those of TraceReader; kInvalidArgument
/// for a pruned expert that the trace's model does not have, kOutOfMemory.
Result<RouteLog> load_route_log(Storage& storage, const Path& path, std::span<const ExpertId> pruned = {});

/// Collects a request's experts. Confined.
class DistinctExperts {
 public:
  explicit DistinctExperts(int n_experts) : counts_(n_experts) {}

  void clear() {
    for (const uint16_t e : list_) counts_[e] = 0;
    list_.clear();
  }
  void add(uint16_t expert) {
    if (counts_[expert]++ == 0) list_.push_back(expert);
  }
  /// Those with most rows first, then by id: the order in which a layer asks for them.
  std::span<const uint16_t> sorted();
  /// In the order they were added.
  std::span<const uint16_t> list() const { return list_; }

 private:
  std::vector<uint32_t> counts_;
  std::vector<uint16_t> list_;
};

}  // namespace forebay
