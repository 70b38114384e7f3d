#include "forebay/engine.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/huge_pages.h"
#include "engine/engine_impl.h"
#include "engine/gguf_vocabulary.h"
#include "engine/session_facts.h"
#include "engine/stops.h"
#include "plan/machine.h"
#include "plan/memory_plan.h"
#include "plan/plan_text.h"

namespace forebay {
namespace {

Result<void> validate(const EngineOptions& o) {
  if (o.model.empty()) return Error{Code::kInvalidArgument, "model: no file given"};
  if (o.threads < 0 || o.threads > 1024)
    return Error{Code::kInvalidArgument, fmt::format("threads: {}, expected 0 to 1024", o.threads)};
  if (o.context < 0 || o.context > (int64_t{1} << 24))
    return Error{Code::kInvalidArgument, fmt::format("context: {}, expected 0 to {}", o.context, 1 << 24)};
  if (o.n_sessions < 1 || o.n_sessions > 1024)
    return Error{Code::kInvalidArgument, fmt::format("n_sessions: {}, expected 1 to 1024", o.n_sessions)};
  if (o.chunk < 0 || o.chunk > 65536)
    return Error{Code::kInvalidArgument, fmt::format("chunk: {}, expected 0 to 65536", o.chunk)};
  if (!(o.max_staleness >= 0 && o.max_staleness <= 1))
    return Error{Code::kInvalidArgument, fmt::format("max_staleness: {}, expected 0 to 1", o.max_staleness)};
  for (const auto& [name, bias] :
       {std::pair("route_bias", o.route_bias), {"route_bias_prompt", o.route_bias_prompt}})
    if (!(bias >= 0 && bias <= 1000))
      return Error{Code::kInvalidArgument, fmt::format("{}: {}, expected 0 to 1000", name, bias)};
  return {};
}

/// The file's recommended sampling, or what suits small chat models.
Result<SamplingOptions> default_sampling(const GgufMetadata& metadata) {
  SamplingOptions s;
  s.temperature = static_cast<float>(TRY(metadata.get_float_or("general.sampling.temp", 0.7)));
  s.top_p = static_cast<float>(TRY(metadata.get_float_or("general.sampling.top_p", 0.95)));
  s.top_k = static_cast<int>(TRY(metadata.get_uint_or("general.sampling.top_k", 20)));
  return s;
}

/// Whether mapped experts would have to leave memory again and again.
bool fits_in_memory(const ModelFootprint& model) {
  const SystemMemory memory = system_memory();
  return memory.total == 0 || model.file_bytes - model.ngram_bytes <= safe_line(memory).bytes();
}

/// Divides the budget before anything is allocated, from what this machine measures.
Result<MemoryPlan> make_plan(Engine::Impl& impl, const ModelFootprint& model, bool copy_trunk) {
  const EngineOptions& o = impl.options;
  const Budget budget = TRY(choose_budget(o.budget_bytes, system_memory()));
  const PlanRequest request{.context = o.context,
                            .kv = o.kv.value_or(usual_kv_type(model.config)),
                            .chunk = o.chunk,
                            .n_logit_rows = o.n_sessions,
                            .n_sessions = o.n_sessions,
                            .copy_trunk = copy_trunk,
                            .prefetch = o.prefetch};
  // A refusal needs no measurement.
  TRY(plan_memory(model, request, budget, assumed_rates()));
  const MachineRates rates = TRY(measure_rates(model, &*impl.file, *impl.storage, impl.kernels));
  return plan_memory(model, request, budget, rates);
}

Result<void> start_trace(Engine::Impl& impl, const ModelFootprint& model) {
  TraceHeader header;
  header.model = model.name;
  header.n_experts = model.config.ffn.n_experts;
  header.n_used = model.config.ffn.n_used;
  for (const ExpertFootprint& block : model.experts) {
    header.expert_bytes.push_back(block.bytes);
    header.slot_bytes.push_back(block.slot_bytes);
  }
  impl.trace = TRY(TraceWriter::create(*impl.storage, impl.options.trace, std::move(header)));
  return {};
}

Result<ModelOptions> choose_model_options(Engine::Impl& impl) {
  const EngineOptions& o = impl.options;
  ModelOptions options;
  options.max_window = o.chunk > 0 ? o.chunk : 256;
  options.mtp = o.load_mtp || impl.mtp_file;
  options.cache.policy = o.expert_policy;
  options.cache.engine = o.read_engine;
  options.expert_pack = o.expert_pack;
  options.routing.decode.lambda = o.route_bias;
  options.routing.prompt.lambda = o.route_bias_prompt;

  const ModelFootprint model =
      TRY(ModelFootprint::from_gguf(*impl.file, impl.mtp_file ? &*impl.mtp_file : nullptr, options.mtp));
  const bool mixture = !model.experts.empty();
  options.kv = o.kv.value_or(usual_kv_type(model.config));
  options.experts = o.experts.value_or(mixture && (o.budget_bytes > 0 || !fits_in_memory(model))
                                           ? ExpertPlacement::kStreamed
                                           : ExpertPlacement::kMapped);
  options.copy_trunk = o.copy_trunk.value_or(mixture && options.experts != ExpertPlacement::kMapped &&
                                             o.memory_limit_bytes == 0 && huge_pages_exist());
  if (mixture && options.experts == ExpertPlacement::kStreamed) {
    const MemoryPlan plan = TRY(make_plan(impl, model, options.copy_trunk));
    options.cache.budget_bytes = plan.arena_bytes;
    options.cache.shelf_bytes = plan.shelf_bytes;
    options.max_window = plan.request.chunk;
    impl.plan = {plan_lines(plan), plan.speed.tokens_per_second(), plan.speed.hit_rate};
  }
  if (!o.trace.empty()) {
    if (!mixture) return Error{Code::kInvalidArgument, "trace: this model has no router to record"};
    TRY(start_trace(impl, model));
    options.trace = impl.trace.get();
  }
  return options;
}

}  // namespace

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContextFull:
      return "context";
    case FinishReason::kRepetition:
      return "repetition";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::open(const EngineOptions& options) {
  const uint64_t limit = options.memory_limit_bytes;
  return open(options, make_posix_storage(),
              std::make_unique<MemoryBudget>(limit == 0 ? MemoryBudget::kUnlimited : limit));
}

Result<Engine> Engine::open(const EngineOptions& options, std::unique_ptr<Storage> storage,
                            std::unique_ptr<MemoryBudget> budget) {
  TRY(validate(options));
  auto impl = std::make_unique<Impl>(options, std::move(storage), std::move(budget));
  const auto named = [&](Error error) { return std::move(error).in(options.model); };

  // Errors of the file's own code already name it; the ones about its content do not.
  impl->file = TRY(GgufFile::open(*impl->storage, options.model));
  if (!options.mtp_model.empty()) impl->mtp_file = TRY(GgufFile::open(*impl->storage, options.mtp_model));
  Result<ModelOptions> model_options = choose_model_options(*impl);
  if (!model_options) return named(std::move(model_options).error());
  Result<Model> model = Model::load(*impl->storage, *impl->file, impl->mtp_file ? &*impl->mtp_file : nullptr,
                                    *model_options, impl->kernels, impl->budget);
  if (!model) return named(std::move(model).error());
  impl->model = std::move(model).value();

  const GgufMetadata& metadata = impl->file->metadata();
  if (!metadata.has("tokenizer.ggml.tokens")) {
    impl->no_tokenizer = "the file has no vocabulary (tokenizer.ggml.tokens)";
  } else {
    Result<Vocabulary> vocabulary = vocabulary_from_gguf(metadata);
    if (!vocabulary) return named(std::move(vocabulary).error());
    if (static_cast<int64_t>(vocabulary->tokens.size()) > impl->model->config().n_vocab)
      return named(
          Error{Code::kCorrupt, fmt::format("tokenizer.ggml.tokens: {} tokens, the embedding has {} rows",
                                            vocabulary->tokens.size(), impl->model->config().n_vocab)});
    Result<Tokenizer> tokenizer = Tokenizer::create(std::move(vocabulary).value());
    if (!tokenizer) return named(std::move(tokenizer).error());
    impl->tokenizer = std::move(tokenizer).value();
  }
  if (!metadata.has("tokenizer.chat_template")) {
    impl->no_template = "the file has no chat template (tokenizer.chat_template)";
  } else {
    // A template that does not parse is an error only for who wants to render it.
    Result<ChatTemplate> parsed = ChatTemplate::parse(TRY(metadata.get_string("tokenizer.chat_template")));
    if (parsed)
      impl->chat_template = std::move(parsed).value();
    else
      impl->no_template = std::move(parsed).error().message;
  }

  if (impl->tokenizer && impl->chat_template)
    impl->turn_token = find_turn_token(*impl->chat_template, *impl->tokenizer);

  ModelInfo& info = impl->info;
  const ModelConfig& config = impl->model->config();
  info.path = options.model;
  info.name = config.name;
  info.architecture = config.architecture;
  info.file_bytes = impl->file->file_bytes();
  info.context_length = config.context_length;
  info.context = options.context > 0 ? options.context : std::min<int64_t>(config.context_length, 8192);
  info.n_vocab = config.n_vocab;
  info.threads = impl->pool.n_threads();
  info.chunk = impl->model->max_window();
  if (config.ffn.n_experts > 0) info.experts = model_options->experts;
  info.trunk_copy_bytes = impl->model->trunk_copy_bytes();
  info.trunk_copy_seconds = impl->model->trunk_copy_seconds();
  info.kv = model_options->kv;
  info.has_tokenizer = impl->tokenizer.has_value();
  info.has_chat_template = impl->chat_template.has_value();
  info.has_mtp = impl->model->has_mtp();
  info.sampling = TRY(default_sampling(metadata));
  if (!options.cache_dir.empty())
    impl->prefixes =
        TRY(PrefixStore::open(*impl->storage, {options.cache_dir, options.cache_bytes, session_facts(*impl),
                                               has_recurrent_state(impl->model->config())}));
  // Padding rows of the vocabulary have logits too; nothing may sample them.
  for (int32_t id = 0; id < config.n_vocab; ++id)
    if (impl->tokenizer &&
        (id >= impl->tokenizer->n_tokens() || impl->tokenizer->kind(id) == TokenKind::kUnused))
      info.sampling.logit_bias.emplace_back(id, -INFINITY);
  return Engine(std::move(impl));
}

const ModelInfo& Engine::info() const {
  return impl_->info;
}

Result<std::vector<int32_t>> Engine::tokenize(std::string_view text, bool parse_special) const {
  if (!impl_->tokenizer)
    return Error{Code::kUnsupported, fmt::format("{}: {}", impl_->options.model, impl_->no_tokenizer)};
  std::vector<int32_t> ids = impl_->tokenizer->encode(text, {.parse_special = parse_special});
  // A rendered template may have written it already.
  const std::optional<TokenId> bos = impl_->tokenizer->bos();
  if (impl_->tokenizer->add_bos() && bos && (ids.empty() || ids[0] != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

Result<std::string> Engine::detokenize(std::span<const int32_t> ids, bool specials) const {
  if (!impl_->tokenizer)
    return Error{Code::kUnsupported, fmt::format("{}: {}", impl_->options.model, impl_->no_tokenizer)};
  return impl_->tokenizer->decode(ids, specials);
}

Result<std::string> Engine::render_chat(std::string_view conversation_json) const {
  if (!impl_->chat_template)
    return Error{Code::kUnsupported, fmt::format("{}: {}", impl_->options.model, impl_->no_template)};
  auto context = nlohmann::ordered_json::parse(conversation_json, nullptr, /*allow_exceptions=*/false);
  if (!context.is_object())
    return Error{Code::kInvalidArgument, "conversation: expected a JSON object with 'messages'"};
  const auto token_text = [&](std::optional<TokenId> id) {
    return id ? impl_->tokenizer->vocabulary().tokens[*id] : std::string();
  };
  if (impl_->tokenizer) {
    if (!context.contains("bos_token")) context["bos_token"] = token_text(impl_->tokenizer->bos());
    if (!context.contains("eos_token")) context["eos_token"] = token_text(impl_->tokenizer->eos());
  }
  return impl_->chat_template->render(context, std::time(nullptr));
}

uint64_t Engine::reserved_bytes() const {
  return impl_->budget.used_bytes();
}
uint64_t Engine::peak_reserved_bytes() const {
  return impl_->budget.peak_bytes();
}
const std::optional<PlanSummary>& Engine::plan() const {
  return impl_->plan;
}

Result<void> Engine::finish_trace() {
  if (impl_->trace == nullptr) return {};
  return impl_->trace->finish();
}

std::optional<CacheDirStats> Engine::cache_dir_stats(bool wait) {
  if (impl_->prefixes == nullptr) return std::nullopt;
  if (wait) impl_->prefixes->wait();
  const PrefixStoreStats s = impl_->prefixes->stats();
  return CacheDirStats{s.n_files, s.bytes, s.n_saved, s.n_pruned, s.n_discarded, s.n_not_saved};
}

std::optional<ExpertCacheStats> Engine::expert_stats() {
  const ExpertCache* cache = impl_->model->expert_cache();
  return cache == nullptr ? std::nullopt : std::optional(cache->stats());
}
double Engine::forward_seconds() const {
  return impl_->forward_seconds;
}
uint64_t Engine::ngram_bytes() const {
  return impl_->model->ngram_bytes();
}
Model& Engine::model() {
  return *impl_->model;
}
const GgufFile& Engine::file() const {
  return *impl_->file;
}
const Tokenizer* Engine::tokenizer() const {
  return impl_->tokenizer ? &*impl_->tokenizer : nullptr;
}
MemoryBudget& Engine::budget() {
  return impl_->budget;
}

}  // namespace forebay
