/// The memory plan: trunk + state + scratch + arena <= budget, known before anything is allocated.
///
/// A run makes it from the open file, before the model is loaded:
///   footprint = ModelFootprint::from_gguf(file, draft_file, with_draft)
///   budget    = choose_budget(asked, system_memory())
///   plan      = plan_memory(footprint, request, budget, measure_rates(...) or assumed_rates())
/// and gives plan.arena_bytes and plan.shelf_bytes to the expert cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "model/layers/scratch.h"
#include "plan/budget.h"
#include "plan/model_footprint.h"
#include "plan/speed.h"
#include "plan/state_bytes.h"

namespace forebay {

/// What a run wants to have. Every field changes memory or speed, and but for kv none changes a result.
struct PlanRequest {
  int64_t context = 0;       // tokens of one session; 0: the model's, at most 8192
  KvType kv = KvType::kF32;  // of the session's keys and values; changes results too
  int64_t chunk = 256;       // most rows of one window: scratch grows with it; 0: what the budget allows
  int64_t n_logit_rows = 1;  // most rows that get logits at once
  int n_sessions = 1;        // states at once, each with its snapshots and its logits
  int n_snapshots = 4;       // copies of the recurrent state that a session keeps to go back to
  uint64_t ngram_cache_bytes = kNgramRowsBytes;  // of rows of the n-gram table; never more than the table
  bool copy_trunk = false;  // the trunk is in memory of its own, but for embeddings that are read by rows
  bool prefetch = true;     // a part of the arena is a shelf for experts that are read ahead
};

/// One line of the plan.
struct PlanItem {
  std::string name;  // "trunk", "state", ...: stable, for programs
  uint64_t bytes = 0;
  std::string why;
};

struct MemoryPlan {
  std::string model;
  Budget budget;
  PlanRequest request;             // with the context and chunk that 0 stood for
  std::vector<PlanItem> items;     // all but the arena, in the order they are printed
  uint64_t arena_bytes = 0;        // for experts: the rest of the budget, at most all_experts_bytes
  uint64_t shelf_bytes = 0;        // of the arena; 0 where every expert fits
  uint64_t least_arena_bytes = 0;  // one token's experts of the largest block at once; 0 for dense models
  uint64_t all_experts_bytes = 0;
  uint64_t ngram_bytes = 0;    // of the table on disk
  uint64_t program_bytes = 0;  // beside the budget: code, stacks, vocabulary; estimated
  StateBytes state;
  Speed speed;
  MachineRates rates;
  std::string hit_source;

  /// Of an item by its name; 0 when there is none.
  uint64_t bytes_of(std::string_view item) const;
  /// All items.
  uint64_t fixed_bytes() const;
  uint64_t sum_bytes() const { return fixed_bytes() + arena_bytes; }
  /// Every expert has its slot: nothing is read twice.
  bool all_resident() const { return arena_bytes == all_experts_bytes; }
};

/// What would do instead of a request that does not fit; 0: no value would.
struct PlanLimits {
  uint64_t least_budget = 0;    // with this context and chunk
  int64_t largest_context = 0;  // with this budget and chunk
  int64_t largest_chunk = 0;    // with this budget and context
};

/// Never allocates. The rest of the budget goes to experts.
/// Errors: kInvalidArgument for a request out of range; kOutOfMemory when the budget holds less than the
/// items and one token's experts, naming the parts and what would fit.
Result<MemoryPlan> plan_memory(const ModelFootprint& model, const PlanRequest& request, const Budget& budget,
                               const MachineRates& rates, const HitCurve& curve = HitCurve::published());

PlanLimits plan_limits(const ModelFootprint& model, const PlanRequest& request, uint64_t budget_bytes);

}  // namespace forebay
