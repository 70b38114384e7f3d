#include "plan/memory_plan.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/format.h"
#include "model/layers/scratch.h"

namespace forebay {
namespace {

/// Room enough to read most of a block ahead in a prompt, and too little to be missed.
constexpr uint64_t kShelfShare = 16;

constexpr int64_t kDefaultContext = 8192;
constexpr int64_t kMaxChunk = 65536;
constexpr int64_t kLargestChosenChunk = 2048;
constexpr int64_t kLeastChosenChunk = 16;
constexpr int64_t kMaxContext = int64_t{1} << 32;

/// Code, stacks, allocator, the file's tensor table: what a program has before it has a model.
constexpr uint64_t kProgramBytes = uint64_t{32} << 20;

PlanRequest resolved(const ModelFootprint& model, PlanRequest request) {
  if (request.context == 0) request.context = std::min(model.config.context_length, kDefaultContext);
  return request;
}

Result<void> check(const PlanRequest& r) {
  const auto in_range = [](std::string_view name, int64_t value, int64_t low, int64_t high) -> Result<void> {
    if (value >= low && value <= high) return {};
    return Error{Code::kInvalidArgument, fmt::format("{}: {}, expected {} to {}", name, value, low, high)};
  };
  TRY(in_range("context", r.context, 1, kMaxContext));
  TRY(in_range("chunk", r.chunk, 0, kMaxChunk));
  TRY(in_range("sessions", r.n_sessions, 1, 1 << 16));
  TRY(in_range("snapshots", r.n_snapshots, 0, 1 << 16));
  return in_range("logit rows", r.n_logit_rows, 1, kMaxChunk);
}

uint64_t least_arena(const ModelFootprint& model) {
  uint64_t least = 0;
  for (const ExpertFootprint& e : model.experts)
    least = std::max(
        least, e.slot_bytes * static_cast<uint64_t>(std::min<int64_t>(model.config.ffn.n_used, e.n_experts)));
  return least;
}

/// `request` is resolved and checked.
std::vector<PlanItem> items_of(const ModelFootprint& model, const PlanRequest& r) {
  const ModelConfig& c = model.config;
  const StateBytes state = state_bytes(c, r.context, model.with_draft, r.kv);
  std::vector<PlanItem> items;
  const auto add = [&](std::string name, uint64_t bytes, std::string why) {
    if (bytes > 0) items.push_back({std::move(name), bytes, std::move(why)});
  };
  add("trunk", r.copy_trunk ? model.trunk_copy_bytes + model.embedding_bytes : model.trunk_bytes,
      r.copy_trunk ? "read for every token: copied, into huge pages"
                   : "read for every token, so all of it stays");
  add("draft_head", r.copy_trunk ? model.draft_copy_bytes : model.draft_bytes,
      "asked for; its experts share the arena");
  add("small_weights", model.copied_bytes, "norms, biases and taps as f32");
  const auto n_sessions = static_cast<uint64_t>(r.n_sessions);
  add("state", n_sessions * state.sum(),
      fmt::format("{}{} tokens: {} of rows and {} fixed",
                  n_sessions == 1 ? "" : fmt::format("{} sessions, each ", n_sessions),
                  grouped_digits(static_cast<uint64_t>(r.context)), human_bytes(state.rows),
                  human_bytes(state.fixed)));
  // A snapshot copies what cannot be cut back; rows stay where they are.
  add("snapshots", n_sessions * static_cast<uint64_t>(r.n_snapshots) * state.fixed,
      fmt::format("{} places to go back to", n_sessions * static_cast<uint64_t>(r.n_snapshots)));
  add("scratch", Scratch::bytes(c, model.with_draft, r.chunk),
      fmt::format("{} rows at once", grouped_digits(static_cast<uint64_t>(r.chunk))));
  add("logits", static_cast<uint64_t>(r.n_logit_rows) * static_cast<uint64_t>(c.n_vocab) * sizeof(float),
      fmt::format("{} of {} tokens", r.n_logit_rows == 1 ? "one row" : fmt::format("{} rows", r.n_logit_rows),
                  grouped_digits(static_cast<uint64_t>(c.n_vocab))));
  add("ngram_rows", std::min(r.ngram_cache_bytes, model.ngram_bytes),
      fmt::format("of a table of {} on disk", human_bytes(model.ngram_bytes)));
  return items;
}

uint64_t sum_of(const std::vector<PlanItem>& items) {
  uint64_t sum = 0;
  for (const PlanItem& item : items) sum += item.bytes;
  return sum;
}

uint64_t needed(const ModelFootprint& model, const PlanRequest& request) {
  return sum_of(items_of(model, request)) + least_arena(model);
}

/// A prompt reads nearly every expert once per chunk, so that large chunks read less; what they take from the
/// experts is a quarter at most.
int64_t choose_chunk(const ModelFootprint& model, PlanRequest request, uint64_t budget_bytes) {
  for (request.chunk = kLargestChosenChunk; request.chunk > kLeastChosenChunk; request.chunk /= 2) {
    if (request.chunk >= 2 * request.context) continue;
    const uint64_t scratch = Scratch::bytes(model.config, model.with_draft, request.chunk);
    if (sum_of(items_of(model, request)) + 3 * scratch <= budget_bytes) break;
  }
  return request.chunk;
}

/// The largest value in [1, high] for which fits() holds, where smaller ones fit if larger ones do; 0: none.
template <typename Fits>
int64_t largest(int64_t high, Fits fits) {
  int64_t low = 0;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

Error refusal(const ModelFootprint& model, const PlanRequest& request, const Budget& budget,
              const std::vector<PlanItem>& items) {
  std::string parts;
  for (const PlanItem& item : items) {
    std::string name = item.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    parts += fmt::format("{} {}, ", name, human_bytes(item.bytes));
  }
  if (!model.experts.empty())
    parts += fmt::format("one token's experts {}", human_bytes(least_arena(model)));
  else
    parts.resize(parts.size() - 2);
  const PlanLimits limits = plan_limits(model, request, budget.bytes);
  std::vector<std::string> instead;
  if (limits.least_budget <= budget.largest_bytes)
    instead.push_back(fmt::format("--budget {}", as_flag(limits.least_budget, /*round_up=*/true)));
  if (limits.largest_context > 0 && limits.largest_context < request.context)
    instead.push_back(fmt::format("--context {}", limits.largest_context));
  if (limits.largest_chunk > 0 && limits.largest_chunk < request.chunk)
    instead.push_back(fmt::format("--chunk {}", limits.largest_chunk));
  return Error{Code::kOutOfMemory,
               fmt::format("budget: {} ({}), but {} are needed: {}; {}", human_bytes(budget.bytes),
                           budget.reason, human_bytes(limits.least_budget), parts,
                           instead.empty() ? "no context or chunk is short enough for this machine"
                                           : fmt::format("would fit: {}", fmt::join(instead, ", or ")))};
}

}  // namespace

uint64_t MemoryPlan::bytes_of(std::string_view name) const {
  for (const PlanItem& item : items)
    if (item.name == name) return item.bytes;
  return 0;
}

uint64_t MemoryPlan::fixed_bytes() const {
  return sum_of(items);
}

PlanLimits plan_limits(const ModelFootprint& model, const PlanRequest& asked, uint64_t budget_bytes) {
  PlanRequest request = resolved(model, asked);
  if (request.chunk == 0) request.chunk = kLeastChosenChunk;
  PlanLimits limits;
  limits.least_budget = needed(model, request);
  const int64_t longest = std::min(kMaxContext, std::max(request.context, model.config.context_length));
  limits.largest_context = largest(longest, [&](int64_t context) {
    PlanRequest r = request;
    r.context = context;
    return needed(model, r) <= budget_bytes;
  });
  limits.largest_chunk = largest(kMaxChunk, [&](int64_t chunk) {
    PlanRequest r = request;
    r.chunk = chunk;
    return needed(model, r) <= budget_bytes;
  });
  return limits;
}

Result<MemoryPlan> plan_memory(const ModelFootprint& model, const PlanRequest& asked, const Budget& budget,
                               const MachineRates& rates, const HitCurve& curve) {
  PlanRequest request = resolved(model, asked);
  TRY(check(request));
  if (request.chunk == 0) request.chunk = choose_chunk(model, request, budget.bytes);
  MemoryPlan plan;
  plan.model = model.name;
  plan.budget = budget;
  plan.request = request;
  plan.items = items_of(model, request);
  plan.least_arena_bytes = least_arena(model);
  plan.all_experts_bytes = model.all_slots_bytes();
  const uint64_t fixed = plan.fixed_bytes();
  if (budget.bytes < fixed || budget.bytes - fixed < plan.least_arena_bytes)
    return refusal(model, request, budget, plan.items);
  plan.arena_bytes = std::min(budget.bytes - fixed, plan.all_experts_bytes);
  if (request.prefetch && !plan.all_resident())
    plan.shelf_bytes = std::min(plan.arena_bytes / kShelfShare, plan.arena_bytes - plan.least_arena_bytes);
  plan.ngram_bytes = model.ngram_bytes;
  plan.program_bytes = kProgramBytes + model.text_bytes;
  plan.state = state_bytes(model.config, request.context, model.with_draft, request.kv);
  plan.rates = rates;
  plan.hit_source = curve.source();

  // Sparse attention reads its chosen cells, dense attention all: those of a full context.
  double share = 1;
  if (model.config.indexer.block_cells != 0)
    share = std::min(
        1.0, static_cast<double>(model.config.indexer.top_k_cells) / static_cast<double>(request.context));
  const HeldBytes held{.arena = plan.arena_bytes - plan.shelf_bytes,
                       .ngram_rows = plan.bytes_of("ngram_rows"),
                       .state_fixed = plan.state.fixed,
                       .state_rows = static_cast<uint64_t>(share * static_cast<double>(plan.state.rows))};
  plan.speed = estimate_speed(model, held, rates, curve);
  return plan;
}

}  // namespace forebay
