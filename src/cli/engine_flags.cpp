#include "cli/engine_flags.h"

#include <fmt/format.h>

#include "cli/model_location.h"
#include "core/format.h"

namespace forebay::cli {

void EngineFlags::declare_model(FlagTable& flags) {
  flags.text("-m,--model", "FILE", model,
             "a GGUF file, or any part of a split one; the embedded model if absent");
}

void EngineFlags::declare_context(FlagTable& flags) {
  flags.integer(
      "-c,--context", "N", context, {0, 1 << 24},
      "tokens that prompt and answer can have together; memory grows with it; 0: the model's, at most "
      "8192");
}

void EngineFlags::declare_speed(FlagTable& flags) {
  flags.integer("-t,--threads", "N", threads, {0, 1024}, "worker threads; 0: the usable cores");
  flags.integer("--chunk", "N", chunk, {1, 65536},
                "most prompt tokens per forward pass; more is faster and takes more memory");
  flags.bytes("--memory-limit", "SIZE", memory_limit,
              "refuse to reserve more than this for state and buffers (8G, 512M); 0: no limit");
}

void EngineFlags::declare_kernels(FlagTable& flags) {
  flags.toggle("--reference-kernels", reference_kernels,
               "use the plain, slow definitions of all operations; changes the last bits");
}

void EngineFlags::declare_experts(FlagTable& flags) {
  flags.choice("--experts", {"mmap", "resident", "stream"}, experts,
               "where experts live: in the mapped file, read into memory and kept, or read under --budget; "
               "changes no result; absent: stream with --budget, else mmap");
  flags.bytes("--budget", "SIZE", budget, "memory for streamed experts (8G, 24M)");
  flags.choice(
      "--policy", {"decay", "lru", "lfu"}, policy,
      "which streamed expert leaves when room is needed: of least decayed use, used longest ago, used "
      "least often; absent: decay");
}

Result<EngineOptions> EngineFlags::resolve() {
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (!experts) experts = budget > 0 ? "stream" : "mmap";
  if (*experts == "stream" && budget == 0) return refuse("--experts stream needs --budget SIZE");
  if (*experts != "stream" && budget > 0) return refuse("--budget needs --experts stream, not " + *experts);
  if (*experts != "stream" && policy) return refuse("--policy needs --experts stream, not " + *experts);
  if (!policy) policy = "decay";
  if (model.empty()) model = TRY(embedded_model()).string();
  return EngineOptions{.model = model,
                       .mtp_model = {},
                       .threads = static_cast<int>(threads),
                       .memory_limit_bytes = memory_limit,
                       .context = context,
                       .chunk = chunk,
                       .experts = *expert_placement_from_name(*experts),
                       .expert_budget_bytes = budget,
                       .expert_policy = *eviction_policy_from_name(*policy),
                       .reference_kernels = reference_kernels};
}

void EngineFlags::adopt(const ModelInfo& info) {
  threads = info.threads;
  context = info.context;
}

std::string experts_line(Engine& engine) {
  const std::optional<ExpertCacheStats> stats = engine.expert_stats();
  if (!stats) return {};
  const uint64_t n = stats->n_hits + stats->n_misses;
  return fmt::format(
      "experts: {:.1f} % of {} in memory, {} read{} in {} reads, waited {:.2f} s, {} of {} used",
      n == 0 ? 0.0 : 100.0 * static_cast<double>(stats->n_hits) / static_cast<double>(n), n,
      human_bytes(stats->bytes_read), stats->direct_io ? " past the page cache" : "", stats->n_misses,
      stats->wait_seconds, human_bytes(stats->peak_bytes), human_bytes(stats->budget_bytes));
}

}  // namespace forebay::cli
