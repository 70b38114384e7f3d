/// What the engine owns, in the order it is built. Sessions see it through a pointer.
#pragma once

#include <memory>
#include <optional>

#include "forebay/engine.h"

#include "core/memory_budget.h"
#include "core/storage.h"
#include "core/thread_pool.h"
#include "gguf/gguf.h"
#include "kernels/context.h"
#include "model/model.h"
#include "session/prefix_store.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "trace/trace.h"

namespace forebay {

struct Engine::Impl {
  Impl(const EngineOptions& options, std::unique_ptr<Storage> storage_to_use,
       std::unique_ptr<MemoryBudget> budget_to_use)
      : options(options),
        storage(std::move(storage_to_use)),
        own_budget(std::move(budget_to_use)),
        budget(*own_budget),
        pool(options.threads, options.pin_threads),
        kernels(pool, options.reference_kernels ? Isa::kReference : best_isa()) {
    kernels.set_activations(options.int8_activations ? Activations::kInt8 : Activations::kExact);
  }

  EngineOptions options;
  ModelInfo info;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<MemoryBudget> own_budget;
  MemoryBudget& budget;
  ThreadPool pool;
  KernelContext kernels;
  std::optional<GgufFile> file;
  std::optional<GgufFile> mtp_file;
  std::unique_ptr<TraceWriter> trace;
  std::optional<PlanSummary> plan;
  std::optional<Model> model;
  std::optional<Tokenizer> tokenizer;
  std::string no_tokenizer;  // why there is none
  std::optional<ChatTemplate> chat_template;
  std::string no_template;
  std::vector<Span> window;               // of the pass at work
  double forward_seconds = 0;             // of all passes
  std::unique_ptr<PrefixStore> prefixes;  // with a cache_dir
  std::optional<bool> answers_kept;       // whether the last prompt began with the answer before it as it was
  std::vector<std::string> session_facts;  // by session_facts.h, on first use
  int32_t turn_token = -1;                 // opens every message of a rendered chat; -1: not known
};

}  // namespace forebay
