#include "cli/engine_flags.h"

#include <fmt/format.h>

#include "cli/model_location.h"
#include "core/log.h"
#include "core/storage.h"
#include "eval/route_curve.h"
#include "gguf/fingerprint.h"

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
  flags.choice("--pin", {"on", "off"}, pin,
               "keep threads on cores of their own, for a machine that nobody else uses; absent: off");
  flags.integer(
      "--chunk", "N", chunk, {0, 65536},
      "most prompt tokens per forward pass; more is faster and takes more memory; 0: what the memory "
      "plan allows, 256 when experts are mapped");
  flags.bytes("--memory-limit", "SIZE", memory_limit,
              "refuse to reserve more than this for state and buffers (8G, 512M); 0: no limit");
}

void EngineFlags::declare_kernels(FlagTable& flags) {
  flags.choice(
      "--activations", {"f32", "int8"}, activations,
      "what quantised weights are multiplied with: exact values, or values rounded to 8 bits, which is "
      "several times faster (forebay kld prints the price)");
  flags.choice(
      "--kv", {"f32", "f16", "bf16", "int8"}, kv,
      "how the context's keys and values are kept: exactly, or rounded, in half or a quarter of the "
      "memory (forebay kld prints the price); absent: int8 where attention is block-sparse, else f32");
  flags.toggle("--reference-kernels", reference_kernels,
               "use the plain, slow definitions of all operations; changes the last bits");
}

void EngineFlags::declare_experts(FlagTable& flags) {
  declare_placement(flags);
  flags.text("--trace", "FILE", trace, "record what the router did, for forebay replay");
  flags.number(
      "--route-bias", "X", route_bias, {0, 1000},
      "prefer experts that are in memory: count their probability 1 + X times, the first three ranks "
      "apart; changes results (forebay kld says by how much); 0: exact");
  flags.number("--route-bias-prompt", "X", route_bias_prompt, {0, 1000},
               "the same for a prompt, the first four ranks and the last 32 tokens apart; 0: exact");
  flags.number("--max-kld", "NATS", max_kld, {0, 100},
               "the largest --route-bias that costs less than this in --route-curve");
  flags.text("--route-curve", "FILE", route_curve,
             "what biases cost this model: forebay route-curve measures it");
}

void EngineFlags::declare_placement(FlagTable& flags) {
  flags.choice("--experts", {"mmap", "resident", "stream"}, experts,
               "where experts live: in the mapped file, read into memory and kept, or read under --budget; "
               "changes no result; absent: stream with --budget or when the file does not fit, else mmap");
  flags.bytes(
      "--budget", "SIZE", budget,
      "with streamed experts, memory for everything (8G, 512M): forebay plan says what for; 0: what is "
      "free, less a margin");
  flags.choice(
      "--trunk", {"auto", "copy", "map"}, trunk,
      "weights that every token reads: copied into memory of 2 MiB pages, or in the mapped file, which "
      "processes share; changes no result; absent: auto, a copy where the system has such pages, experts are "
      "not mapped and there is no --memory-limit");
  flags.choice(
      "--policy", {"decay", "lru", "lfu", "ema", "near-pick", "inverse"}, policy,
      "which streamed expert leaves when room is needed: of least decayed use, used longest ago, used "
      "least often, or by what the router thought of it; absent: decay");
  flags.choice("--prefetch", {"on", "off"}, prefetch,
               "read the next block's likely experts while this one computes; changes no result; absent: on");
  flags.choice(
      "--io", {"auto", "uring", "threads"}, io,
      "how streamed experts are read: the kernel's queue, or threads; changes no result; absent: auto");
  flags.text("--pack", "FILE", pack,
             "read experts from this pack of the model (forebay pack), in one piece each");
}

Result<void> EngineFlags::choose_route_bias() {
  if (!max_kld && route_curve.empty()) return {};
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (!max_kld) return refuse("--route-curve needs --max-kld");
  if (route_curve.empty()) return refuse("--max-kld needs --route-curve: forebay route-curve measures one");
  if (route_bias > 0) return refuse("--max-kld chooses the bias: it cannot be given with --route-bias");
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const std::string text = TRY(read_text(*storage, route_curve));
  Result<RouteCurve> curve = parse_route_curve(text);
  if (!curve) return std::move(curve.error()).in(route_curve);
  const GgufFile file = TRY(GgufFile::open(*storage, model));
  if (fingerprint(file) != curve->model)
    return refuse(fmt::format("{}: measured for another model ({}), not for {}", route_curve,
                              curve->model_name, model));
  route_bias = bias_within(*curve, *max_kld);
  if (route_bias > 0)
    log::info("route bias {:g}: the largest that costs less than {:g} nats per token in {}", route_bias,
              *max_kld, route_curve);
  else
    log::warn("no route bias costs less than {:g} nats per token in {}: routing is exact", *max_kld,
              route_curve);
  return {};
}

void EngineFlags::declare_cache(FlagTable& flags) {
  flags.text("--cache-dir", "DIR", cache_dir,
             "keep states in this directory, and find in it what a prompt begins with; changes no result");
  flags.bytes("--cache-size", "SIZE", cache_size,
              "most bytes of all states in --cache-dir: those used longest ago leave; 0: no limit");
}

void EngineFlags::declare_edits(FlagTable& flags) {
  flags.choice(
      "--reuse-edits", {"on", "off", "transport"}, reuse_edits,
      "after an edit in the middle of a conversation, move what follows instead of reading it again; "
      "transport also corrects the recurrent layers' long memories; changes results (forebay "
      "scr-test says by how much)");
}

Result<EngineOptions> EngineFlags::resolve() {
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (experts && *experts != "stream") {
    const std::string not_stream = " needs --experts stream, not " + *experts;
    if (budget > 0) return refuse("--budget" + not_stream);
    if (policy) return refuse("--policy" + not_stream);
    if (prefetch) return refuse("--prefetch" + not_stream);
    if (!pack.empty() && *experts == "mmap")
      return refuse("--pack needs --experts stream or resident, not mmap");
    if (io && *experts == "mmap") return refuse("--io needs --experts stream or resident, not mmap");
    if (max_kld) return refuse("--max-kld" + not_stream);
    if (route_bias > 0) return refuse("--route-bias" + not_stream);
    if (route_bias_prompt > 0) return refuse("--route-bias-prompt" + not_stream);
  }
  if (!policy) policy = "decay";
  if (!prefetch) prefetch = "on";
  if (!io) io = "auto";
  if (model.empty()) model = TRY(embedded_model()).string();
  TRY(choose_route_bias());
  return EngineOptions{
      .model = model,
      .mtp_model = {},
      .threads = static_cast<int>(threads),
      .pin_threads = pin == "on",
      .memory_limit_bytes = memory_limit,
      .context = context,
      .chunk = chunk,
      .experts = experts ? expert_placement_from_name(*experts) : std::nullopt,
      .budget_bytes = budget,
      .expert_policy = *eviction_policy_from_name(*policy),
      .read_engine = *read_engine_from_name(*io),
      .copy_trunk = trunk && *trunk != "auto" ? std::optional(*trunk == "copy") : std::nullopt,
      .expert_pack = pack,
      .prefetch = *prefetch == "on",
      .cache_dir = cache_dir,
      .cache_bytes = cache_size,
      .trace = trace,
      .int8_activations = *activations == "int8" && !reference_kernels,
      .kv = kv ? kv_type_from_name(*kv) : std::nullopt,
      .reuse_edits = *reuse_edits != "off",
      .transport_edits = *reuse_edits == "transport",
      .reference_kernels = reference_kernels,
      .route_bias = route_bias,
      .route_bias_prompt = route_bias_prompt};
}

void EngineFlags::adopt(const ModelInfo& info) {
  threads = info.threads;
  chunk = info.chunk;
  if (info.experts) experts = name_of(*info.experts);
  context = info.context;
  trunk = info.trunk_copy_bytes > 0 ? "copy" : "map";
  kv = name_of(info.kv);
}

}  // namespace forebay::cli
