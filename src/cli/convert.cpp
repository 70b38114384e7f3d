// forebay convert: a checkpoint directory becomes a GGUF file.
#include "convert/convert.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/json_writer.h"
#include "cli/terminal.h"
#include "cli/verbosity.h"
#include "core/format.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/progress.h"

namespace forebay::cli {
namespace {

class ConvertCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  void print_report(const ConvertReport& report) const;
  std::string as_json(const ConvertReport& report, const FlagTable& flags) const;

  std::string directory_;
  std::string output_;
  std::optional<std::string> type_;
  std::string plan_file_;
  std::optional<std::string> mtp_;
  std::string name_;
  int64_t threads_ = 0;
  bool dry_run_ = false;
  bool json_ = false;
  Verbosity verbosity_;
};

void ConvertCommand::declare(FlagTable& flags) {
  flags.text("DIR", "", directory_, "a directory with config.json, safetensors and tokenizer.json");
  flags.section("Options");
  flags.text("-o,--output", "FILE", output_, "the GGUF file to write");
  flags.text("--type", "TYPE|PLAN", type_,
             "the type of most weights (q8_0, q4_k, bf16, ...), or types by tensor name: "
             "q4_k,blk.?.ffn_down_exps.weight=q8_0; absent: the plan's, else q8_0");
  flags.text("--plan", "FILE", plan_file_, "a file with such entries, one per line");
  flags.choice(
      "--mtp", {"merged", "separate", "none"}, mtp_,
      "the draft head: in the same file, in a file of its own (mtp-NAME), or left out; absent: merged");
  flags.text("--name", "TEXT", name_, "the model's name; absent: the directory's");
  flags.toggle("--dry-run", dry_run_, "check everything and print sizes, write nothing");
  flags.toggle("--json", json_, "print the report as one JSON object");
  flags.integer("-t,--threads", "N", threads_, {0, 1024}, "worker threads; 0: the usable cores");
  verbosity_.declare(flags);
}

Result<void> ConvertCommand::check() {
  TRY(verbosity_.check());
  if (directory_.empty()) return Error{Code::kInvalidArgument, "DIR is missing"};
  if (output_.empty() && !dry_run_) return Error{Code::kInvalidArgument, "-o is missing"};
  if (type_)
    if (const Result<TypePlan> plan = parse_type_plan(*type_); !plan) return Error(plan.error()).in("--type");
  return {};
}

Result<ExitCode> ConvertCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  const std::unique_ptr<Storage> storage = make_posix_storage();
  std::string plan = type_.value_or("");
  if (!plan_file_.empty()) plan += '\n' + TRY(read_argument(*storage, plan_file_));
  ConvertOptions options;
  if (!plan.empty()) options.types = TRY(parse_type_plan(plan));
  if (mtp_)
    options.mtp = *mtp_ == "none"       ? MtpMode::kNone
                  : *mtp_ == "separate" ? MtpMode::kSeparate
                                        : MtpMode::kMerged;
  options.name = name_;
  options.dry_run = dry_run_;
  if (output_.empty()) output_ = "model.gguf";
  ThreadPool pool(static_cast<int>(threads_));
  threads_ = pool.n_threads();
  log_settings(flags);

  std::optional<Progress> progress;
  const auto on_progress = [&](const ConvertProgress& at) {
    if (!progress)
      progress.emplace("convert", at.n_bytes, ProgressOptions{.style = progress_style(verbosity_)});
    progress->set_detail(std::string(at.tensor));
    progress->set(at.bytes_done);
  };
  const ConvertReport report =
      TRY(convert_checkpoint(*storage, directory_, output_, options, pool, on_progress, interrupt.token()));
  progress.reset();
  if (json_)
    fmt::print("{}\n", as_json(report, flags));
  else if (!verbosity_.quiet)
    print_report(report);
  return ExitCode::kDone;
}

/// The files are the answer; what was done is said on stderr, unless nothing but that was asked for.
void ConvertCommand::print_report(const ConvertReport& report) const {
  std::FILE* const out = dry_run_ ? stdout : stderr;
  for (const ConvertReport::Output& file : report.outputs)
    fmt::print(out, "{}: {} tensors, {}{}\n", file.path.string(), file.n_tensors,
               human_bytes(file.tensor_bytes), dry_run_ ? " (not written)" : "");
  fmt::print(out, "{}, {} parameters\n", report.architecture, human_count(report.n_parameters));
  for (const auto& [type, share] : report.by_type)
    fmt::print(out, "  {:<8} {:>6} tensors {:>10}\n", forebay::name_of(type), share.n_tensors,
               human_bytes(share.bytes));
  for (const std::string& note : report.notes) log::info("{}", note);
}

std::string ConvertCommand::as_json(const ConvertReport& report, const FlagTable& flags) const {
  JsonWriter json;
  json.begin_object();
  json.key("architecture").string(report.architecture).key("parameters").integer(report.n_parameters);
  json.key("written").boolean(!dry_run_);
  json.key("files").begin_array();
  for (const ConvertReport::Output& file : report.outputs) {
    json.begin_object().key("path").string(file.path.string()).key("tensors").integer(file.n_tensors);
    json.key("bytes").integer(file.tensor_bytes).end_object();
  }
  json.end_array().key("types").begin_object();
  for (const auto& [type, share] : report.by_type) {
    json.key(forebay::name_of(type)).begin_object().key("tensors").integer(share.n_tensors);
    json.key("bytes").integer(share.bytes).end_object();
  }
  json.end_object().key("notes").begin_array();
  for (const std::string& note : report.notes) json.string(note);
  json.end_array();
  write_settings(json, flags);
  json.end_object();
  return json.text();
}

}  // namespace

CommandInfo convert_command() {
  return {
      .name = "convert",
      .summary = "make a GGUF file from a checkpoint directory",
      .usage = "DIR -o OUT.gguf [options]",
      .examples = {{"forebay convert Qwen3-30B-A3B -o qwen.gguf --type q4_k", "experts in 4 bits"},
                   {"forebay convert DIR -o out.gguf --type bf16 --mtp separate", "the draft head beside it"},
                   {"forebay convert DIR --dry-run --type q6_k", "sizes, nothing written"}},
      .details =
          "Reads config.json, the safetensors, the tokenizer and the chat template. Tensors pass through "
          "one by one, so memory does not grow with the model. Nothing appears under the output's name "
          "until it is complete.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ConvertCommand>()); }};
}

}  // namespace forebay::cli
