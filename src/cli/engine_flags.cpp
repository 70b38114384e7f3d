#include "cli/engine_flags.h"

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

Result<EngineOptions> EngineFlags::resolve() {
  if (model.empty()) model = TRY(embedded_model()).string();
  return EngineOptions{.model = model,
                       .mtp_model = {},
                       .threads = static_cast<int>(threads),
                       .memory_limit_bytes = memory_limit,
                       .context = context,
                       .chunk = chunk,
                       .reference_kernels = reference_kernels};
}

void EngineFlags::adopt(const ModelInfo& info) {
  threads = info.threads;
  context = info.context;
}

}  // namespace forebay::cli
