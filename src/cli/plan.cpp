// forebay plan: what a model will take and how fast it will be, before anything is allocated.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/hit_curve.h"
#include "cli/model_location.h"
#include "cli/plan_flags.h"
#include "cli/plan_json.h"
#include "cli/synthetic_model.h"
#include "cli/verbosity.h"
#include "core/huge_pages.h"
#include "core/interrupt.h"
#include "model/state.h"
#include "plan/machine.h"
#include "plan/memory_plan.h"
#include "plan/plan_text.h"

namespace forebay::cli {
namespace {

class PlanCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  void print_refusal(const ModelFootprint& model, const SystemMemory& memory, uint64_t budget_bytes,
                     const Error& error) const;

  Result<HitCurve> hit_curve(Storage& storage, const ModelFootprint& model, const MemoryPlan& plan);

  std::string model_, draft_model_, like_, type_;
  std::optional<std::string> trace_;
  uint64_t budget_ = 0;
  int64_t threads_ = 0;
  std::optional<std::string> kv_, trunk_;
  bool draft_ = false;
  bool json_ = false;
  PlanRequest request_{.chunk = 0};  // as forebay run has it
  MachineFlags machine_;
  Verbosity verbosity_;
};

void PlanCommand::declare(FlagTable& flags) {
  flags.text("MODEL", "", model_, "a GGUF file, or any part of a split one; the embedded model if absent");
  flags.section("What is planned");
  flags.bytes("--budget", "SIZE", budget_,
              "memory for everything: trunk, state, scratch, experts; 0: what is free, less a margin");
  flags.integer("-c,--context", "N", request_.context, {0, 1 << 24},
                "tokens that prompt and answer can have together; 0: the model's, at most 8192");
  flags.integer("--chunk", "N", request_.chunk, {0, 65536},
                "most prompt tokens per forward pass; 0: what the budget allows");
  flags.choice("--kv", {"f32", "f16", "bf16", "int8"}, kv_,
               "how keys and values are kept; absent: int8 where attention is block-sparse, else f32");
  flags.choice(
      "--trunk", {"auto", "copy", "map"}, trunk_,
      "weights that every token reads: copied into memory of 2 MiB pages, or in the mapped file; absent: "
      "auto, a copy where the system has such pages");
  flags.toggle("--mtp", draft_, "with the draft head");
  flags.text("--mtp-model", "FILE", draft_model_, "a draft head in a file of its own");
  flags.text("--like", "NAME", like_, "instead of MODEL, a published model's sizes; see forebay synth");
  flags.text("--type", "TYPE", type_, "with --like: the type of its experts, as for convert");
  flags.text("--trace", "FILE", trace_,
             "expect the hits that this recording (run --trace) gives in a cache of that size; absent: a "
             "published measurement");
  flags.section("The machine");
  machine_.declare(flags);
  flags.integer("-t,--threads", "N", threads_, {0, 1024}, "threads that measure; 0: the usable cores");
  flags.section("Result");
  flags.toggle("--json", json_, "print one JSON object");
  verbosity_.declare(flags);
}

Result<void> PlanCommand::check() {
  TRY(verbosity_.check());
  if (!like_.empty() && !model_.empty())
    return Error{Code::kInvalidArgument, "MODEL and --like exclude each other"};
  if (like_.empty() != type_.empty())
    return Error{Code::kInvalidArgument, "--like and --type need each other"};
  if (!like_.empty() && (draft_ || !draft_model_.empty()))
    return Error{Code::kInvalidArgument, "--like has no draft head: --mtp and --mtp-model need MODEL"};
  return machine_.check();
}

Result<ExitCode> PlanCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  if (model_.empty() && like_.empty()) model_ = TRY(embedded_model()).string();
  log_settings(flags);
  const std::unique_ptr<Storage> storage = make_posix_storage();
  std::optional<GgufFile> file, draft_file;
  ModelFootprint model;
  if (!like_.empty()) {
    const SyntheticModel synthetic = TRY(SyntheticModel::like(like_));
    model = TRY(synthetic.footprint(TRY(parse_type_plan(type_, WeightSource::kRandom))));
  } else {
    file = TRY(GgufFile::open(*storage, model_));
    if (!draft_model_.empty()) draft_file = TRY(GgufFile::open(*storage, draft_model_));
    Result<ModelFootprint> read =
        ModelFootprint::from_gguf(*file, draft_file ? &*draft_file : nullptr, draft_ || draft_file);
    if (!read) return std::move(read).error().in(model_);
    model = std::move(read).value();
    if (draft_ && !model.with_draft)
      return Error{Code::kUnsupported, fmt::format("{}: has no draft head, which --mtp asks for", model_)};
  }

  request_.kv = kv_ ? *kv_type_from_name(*kv_) : usual_kv_type(model.config);
  kv_ = name_of(request_.kv);
  request_.copy_trunk = !trunk_ || *trunk_ == "auto" ? huge_pages_exist() : *trunk_ == "copy";
  trunk_ = request_.copy_trunk ? "copy" : "map";
  const SystemMemory memory = machine_.memory();
  const Result<Budget> budget = choose_budget(budget_, memory);
  if (!budget) {
    print_refusal(model, memory, safe_line(memory).bytes(), budget.error());
    return budget.error();
  }
  // Whether it fits does not depend on rates: a refusal needs no measurement.
  Result<MemoryPlan> plan = plan_memory(model, request_, *budget, machine_.given_rates());
  if (!plan) {
    print_refusal(model, memory, budget->bytes, plan.error());
    return plan.error();
  }
  const HitCurve curve = trace_ ? TRY(hit_curve(*storage, model, *plan)) : HitCurve::published();
  if (machine_.has_all_rates()) {
    plan = TRY(plan_memory(model, request_, *budget, machine_.given_rates(), curve));
  } else {
    ThreadPool pool(static_cast<int>(threads_));
    KernelContext kernels(pool, best_isa());
    kernels.set_activations(Activations::kInt8);  // as forebay run computes
    MachineRates rates =
        TRY(measure_rates(model, file ? &*file : nullptr, *storage, kernels, interrupt.token()));
    machine_.apply(rates);
    plan = TRY(plan_memory(model, request_, *budget, rates, curve));
  }
  if (!json_) {
    fmt::print("{}", plan_table(*plan));
    return ExitCode::kDone;
  }
  JsonWriter json;
  json.begin_object().key("fits").boolean(true);
  write_plan(json, *plan);
  json.key("memory");
  write_memory(json, memory);
  write_settings(json, flags);
  json.end_object();
  fmt::print("{}\n", json.text());
  return ExitCode::kDone;
}

Result<HitCurve> PlanCommand::hit_curve(Storage& storage, const ModelFootprint& model,
                                        const MemoryPlan& plan) {
  if (plan.all_experts_bytes == 0)
    return Error{Code::kInvalidArgument, "--trace: the model has no experts to cache"};
  const RouteLog log = TRY(load_route_log(storage, *trace_));
  ThreadPool pool(static_cast<int>(threads_));
  Result<HitCurve> curve = measured_hit_curve(log, model, plan.speed.resident_share, pool);
  if (!curve) return std::move(curve).error().in(fmt::format("--trace {}", *trace_));
  return curve;
}

/// For programs: the error's line goes to stderr all the same.
void PlanCommand::print_refusal(const ModelFootprint& model, const SystemMemory& memory,
                                uint64_t budget_bytes, const Error& error) const {
  if (!json_ || error.code != Code::kOutOfMemory) return;
  const PlanLimits limits = plan_limits(model, request_, budget_bytes);
  JsonWriter json;
  json.begin_object().key("fits").boolean(false).key("model").string(model.name);
  json.key("error").string(error.message);
  json.key("budget_bytes").integer(budget_ > 0 ? budget_ : budget_bytes);
  json.key("largest_budget_bytes").integer(safe_line(memory).bytes());
  json.key("least_budget_bytes").integer(limits.least_budget);
  json.key("largest_context").integer(limits.largest_context);
  json.key("largest_chunk").integer(limits.largest_chunk);
  json.key("memory");
  write_memory(json, memory);
  json.end_object();
  fmt::print("{}\n", json.text());
}

}  // namespace

CommandInfo plan_command() {
  return {
      .name = "plan",
      .summary = "say what a model will take and how fast it will be",
      .usage = "[options] [MODEL]",
      .examples = {{"forebay plan model.gguf", "here, with what is free now"},
                   {"forebay plan model.gguf --budget 10G -c 32768", "with this much memory"},
                   {"forebay plan model.gguf --sim-ram 16G", "on a machine of 16 GiB"},
                   {"forebay plan --like qwen3.8-flash-next --type q2_0 --sim-ram 24G",
                    "a model that is not here yet"}},
      .details =
          "Reads the file's header alone. Speeds are expected ones: what one token moves, over what memory, "
          "kernels and the model's own disk were just measured to move. A plan that does not fit is refused "
          "with what would.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<PlanCommand>()); }};
}

}  // namespace forebay::cli
