// forebay synth: a model file of real size without a model.
#include "synth/synth.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "cli/json_writer.h"
#include "cli/verbosity.h"
#include "core/format.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/progress.h"

namespace forebay::cli {
namespace {

class SynthCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  void print_report(const SynthPlan& plan, double seconds) const;
  std::string as_json(const SynthPlan& plan, double seconds, const FlagTable& flags) const;

  std::string like_ = synth::geometry_names().front();
  std::string output_;
  std::string type_ = "q2_0";
  synth::GeometryChanges changes_;
  SynthOptions options_;
  int64_t threads_ = 0;
  bool dry_run_ = false;
  bool json_ = false;
  Verbosity verbosity_;
};

void SynthCommand::declare(FlagTable& flags) {
  flags.section("The file");
  flags.text("--like", "NAME", like_,
             fmt::format("the model whose sizes it has: {}", fmt::join(synth::geometry_names(), ", ")));
  flags.text("--type", "TYPE|PLAN", type_,
             "the type of experts and n-gram table, or types by tensor name, as for convert: "
             "q4_k,*ffn_down_exps.weight=q8_0");
  flags.text("-o,--output", "FILE", output_, "the GGUF file to write");
  flags.integer("--seed", "N", options_.seed, {0, std::numeric_limits<int64_t>::max()},
                "of the weights; the same seed and options give the same bytes");
  flags.text("--name", "TEXT", options_.name, "the model's name; absent: the geometry's");

  flags.section("Routing");
  flags.number(
      "--skew", "X", options_.routing.skew, {0, 10},
      "how much more some experts are used than others: deviation of their constant logits, relative "
      "to what changes with the tokens");
  flags.number("--locality", "X", options_.routing.locality, {0, 0.95},
               "share of what changes slowly in what routers read, at the last block");

  flags.section("Other sizes than the model's own");
  const auto size = [&flags](const char* name, std::optional<uint64_t>& value, int64_t min, int64_t max,
                             const char* help) {
    flags.integer(name, "N", value, {min, max}, help);
  };
  constexpr int64_t kWidth = 1 << 20;
  size("--blocks", changes_.n_blocks, 1, 4095, "blocks; fewer make a cut that fits where the whole does not");
  size("--width", changes_.d_model, 32, kWidth, "of the residual");
  size("--experts", changes_.n_experts, 1, 1 << 16, "experts per block");
  size("--used", changes_.n_used, 1, 64, "experts that a token uses");
  size("--expert-width", changes_.expert_width, 32, kWidth, "inner width of an expert");
  size("--shared-width", changes_.shared_width, 32, kWidth, "inner width of the shared expert");
  size("--heads", changes_.n_heads, 1, 4096, "query heads of attention");
  size("--kv-heads", changes_.n_kv_heads, 1, 4096, "key and value heads of attention");
  size("--head-width", changes_.head_dim, 8, 4096, "width of these heads");
  size("--delta-key-heads", changes_.n_delta_key_heads, 1, 4096, "key heads of gated delta blocks");
  size("--delta-value-heads", changes_.n_delta_value_heads, 1, 4096, "value heads of gated delta blocks");
  size("--delta-width", changes_.delta_dim, 8, 4096, "width of these heads");
  size("--stream-rank", changes_.stream_rank, 32, kWidth, "inner width of a read of the residual streams");
  size("--vocab", changes_.n_vocab, 1, 1 << 24, "tokens");
  size("--ngram-rows", changes_.n_ngram_rows, 0, int64_t{1} << 33,
       "rows of the n-gram table, about; 0: none");
  size("--context", changes_.context_length, 1, int64_t{1} << 32, "longest context, as the file says");

  flags.section("Running");
  flags.toggle("--dry-run", dry_run_, "print sizes, write nothing");
  flags.toggle("--json", json_, "print the report as one JSON object");
  flags.integer("-t,--threads", "N", threads_, {0, 1024}, "worker threads; 0: the usable cores");
  verbosity_.declare(flags);
}

Result<void> SynthCommand::check() {
  TRY(verbosity_.check());
  if (output_.empty() && !dry_run_) return Error{Code::kInvalidArgument, "-o is missing"};
  const Result<TypePlan> types = parse_type_plan(type_, WeightSource::kRandom);
  if (!types) return Error(types.error()).in("--type");
  options_.types = *types;
  const Result<synth::Geometry> named = synth::find_geometry(like_);
  if (!named) return Error(named.error()).in("--like");
  options_.geometry = TRY(synth::changed(*named, changes_));
  return {};
}

/// Refuses a file that would not fit, before hours are spent on it. What is overwritten counts as used: the
/// old file stays until the new one is complete.
Result<void> check_space(const Path& output, uint64_t n_bytes) {
  std::error_code error;
  const Path directory = std::filesystem::absolute(output, error).parent_path();
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error) return {};  // creating the file says what is wrong
  if (n_bytes <= space.available) return {};
  return Error{Code::kIo, fmt::format("{}: {} needed, {} free in {}", output.string(), human_bytes(n_bytes),
                                      human_bytes(space.available), directory.string())};
}

Result<ExitCode> SynthCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const SynthPlan plan = TRY(plan_synthetic(options_));
  ThreadPool pool(static_cast<int>(threads_));
  threads_ = pool.n_threads();
  log_settings(flags);
  double seconds = 0;
  if (!dry_run_) {
    TRY(check_space(output_, plan.file_bytes));
    if (!verbosity_.quiet) fmt::print(stderr, "{}: {} to write\n", output_, human_bytes(plan.file_bytes));
    Progress progress("synth", plan.tensor_bytes, {.style = progress_style(verbosity_)});
    const auto on_progress = [&](const SynthProgress& at) {
      progress.set_detail(std::string(at.tensor));
      progress.set(at.bytes_done);
    };
    const auto start = std::chrono::steady_clock::now();
    TRY(write_synthetic(*storage, output_, plan, pool, on_progress, interrupt.token()));
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  if (json_)
    fmt::print("{}\n", as_json(plan, seconds, flags));
  else if (!verbosity_.quiet)
    print_report(plan, seconds);
  return ExitCode::kDone;
}

/// The file is the answer; what it holds is said on stderr, unless nothing but that was asked for.
void SynthCommand::print_report(const SynthPlan& plan, double seconds) const {
  std::FILE* const out = dry_run_ ? stdout : stderr;
  if (dry_run_)
    fmt::print(out, "{} ({} bytes), not written\n", human_bytes(plan.file_bytes), plan.file_bytes);
  else
    fmt::print(out, "{}: {} in {}, {}/s\n", output_, human_bytes(plan.file_bytes),
               human_duration(std::chrono::duration<double>(seconds)),
               human_bytes(static_cast<uint64_t>(static_cast<double>(plan.file_bytes) / seconds)));
  fmt::print(out, "{}, {} parameters in {} tensors, {} per expert\n", options_.geometry.config.architecture,
             human_count(plan.n_parameters), plan.tensors.size(), human_bytes(plan.expert_bytes));
  for (const auto& [type, share] : plan.by_type)
    fmt::print(out, "  {:<8} {:>6} tensors {:>10}\n", forebay::name_of(type), share.n_tensors,
               human_bytes(share.bytes));
  for (const std::string& note : plan.notes) log::info("{}", note);
}

std::string SynthCommand::as_json(const SynthPlan& plan, double seconds, const FlagTable& flags) const {
  JsonWriter json;
  json.begin_object();
  json.key("architecture").string(options_.geometry.config.architecture);
  json.key("parameters").integer(plan.n_parameters);
  json.key("tensors").integer(plan.tensors.size());
  json.key("bytes").integer(plan.file_bytes).key("expert_bytes").integer(plan.expert_bytes);
  json.key("written").boolean(!dry_run_);
  if (!dry_run_) json.key("path").string(output_).key("seconds").number(seconds);
  json.key("types").begin_object();
  for (const auto& [type, share] : plan.by_type) {
    json.key(forebay::name_of(type)).begin_object().key("tensors").integer(share.n_tensors);
    json.key("bytes").integer(share.bytes).end_object();
  }
  json.end_object().key("notes").begin_array();
  for (const std::string& note : plan.notes) json.string(note);
  json.end_array();
  write_settings(json, flags);
  json.end_object();
  return json.text();
}

}  // namespace

CommandInfo synth_command() {
  return {
      .name = "synth",
      .summary = "write a model file of real size with random weights",
      .usage = "-o OUT.gguf [options]",
      .examples = {{"forebay synth --like qwen3.8-flash-next --type q2_0 -o big.gguf",
                    "38 GiB to stream experts from"},
                   {"forebay synth --like qwen3-next-80b --blocks 8 -o cut.gguf",
                    "a cut that fits in memory"},
                   {"forebay synth --like qwen3.5-35b-a3b --type q4_k --dry-run", "sizes, nothing written"}},
      .details =
          "For measurements of reading, caching and computing: the file has the published sizes, tensor "
          "names and "
          "metadata, and a made-up tokenizer, so that other engines load it too. What a model like that says "
          "means "
          "nothing. Routers use some experts more than others, and often again by the next tokens. Nothing "
          "appears "
          "under the output's name until it is complete.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<SynthCommand>()); }};
}

}  // namespace forebay::cli
