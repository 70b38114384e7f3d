#include "cli/engine_flags.h"

#include <fmt/format.h>

#include "cli/model_location.h"

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
      "--policy", {"decay", "lru", "lfu", "ema", "near-pick", "inverse"}, policy,
      "which streamed expert leaves when room is needed: of least decayed use, used longest ago, used "
      "least often, or by what the router thought of it; absent: decay");
  flags.choice("--prefetch", {"on", "off"}, prefetch,
               "read the next block's likely experts while this one computes; changes no result; absent: on");
  flags.choice(
      "--io", {"auto", "uring", "threads"}, io,
      "how streamed experts are read: the kernel's queue, or threads; changes no result; absent: auto");
  flags.number(
      "--route-bias", "X", route_bias, {0, 1000},
      "prefer experts that are in memory: count their probability 1 + X times, the first three ranks "
      "apart; changes results (forebay kld says by how much); 0: exact");
  flags.number("--route-bias-prompt", "X", route_bias_prompt, {0, 1000},
               "the same for a prompt, the first four ranks and the last 32 tokens apart; 0: exact");
}

Result<EngineOptions> EngineFlags::resolve() {
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (!experts) experts = budget > 0 ? "stream" : "mmap";
  if (*experts == "stream" && budget == 0) return refuse("--experts stream needs --budget SIZE");
  if (*experts != "stream" && budget > 0) return refuse("--budget needs --experts stream, not " + *experts);
  const bool streamed = *experts == "stream";
  if (!streamed && policy) return refuse("--policy needs --experts stream, not " + *experts);
  if (!streamed && prefetch) return refuse("--prefetch needs --experts stream, not " + *experts);
  if (*experts == "mmap" && io) return refuse("--io needs --experts stream or resident, not mmap");
  if (!streamed && (route_bias > 0 || route_bias_prompt > 0))
    return refuse("--route-bias needs --experts stream, not " + *experts);
  if (!policy) policy = "decay";
  if (!prefetch) prefetch = "on";
  if (!io) io = "auto";
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
                       .read_engine = *read_engine_from_name(*io),
                       .prefetch = *prefetch == "on",
                       .reference_kernels = reference_kernels,
                       .route_bias = route_bias,
                       .route_bias_prompt = route_bias_prompt};
}

void EngineFlags::adopt(const ModelInfo& info) {
  threads = info.threads;
  context = info.context;
}

}  // namespace forebay::cli
