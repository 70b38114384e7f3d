// forebay kld: what a shortcut costs, in nats.
#include "eval/kld.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/expert_stats.h"
#include "cli/input.h"
#include "cli/json_writer.h"
#include "cli/verbosity.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/progress.h"
#include "gguf/text.h"
#include "tokenizer/tokenizer.h"

namespace forebay::cli {
namespace {

class KldCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  void print_table(const Engine& engine, const KldReport& report) const;
  std::string as_json(const Engine& engine, const KldReport& report,
                      const std::optional<ExpertCacheStats>& experts, const FlagTable& flags) const;

  EngineFlags candidate_, reference_;
  std::string candidate_options_, reference_options_;
  std::vector<std::string> texts_;
  KldOptions options_;
  std::optional<double> limit_;
  std::optional<std::string> kept_, plot_;
  int64_t n_flips_ = 10;
  bool json_ = false;
  std::optional<std::string> stats_;
  Verbosity verbosity_;
};

/// Flags that only one side gets, in one argument: "--reference-kernels -t 1".
Result<void> parse_options(std::string_view flag, const std::string& text, EngineFlags& side) {
  FlagTable flags;
  side.declare_speed(flags);
  side.declare_experts(flags);
  side.declare_kernels(flags);
  std::vector<std::string> words = {"kld"};
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const Result<FlagTable::Parsed> parsed = flags.parse(arguments);
  if (!parsed) return Error(parsed.error()).in(flag);
  return {};
}

void KldCommand::declare(FlagTable& flags) {
  flags.section("What is compared");
  flags.text("-m,--model", "FILE", candidate_.model, "the candidate; the embedded model if absent");
  flags.text("--ref", "FILE", reference_.model, "the reference, usually of higher precision");
  flags.many("--text", "FILE...", texts_, "texts to read; <|endoftext|> in them separates documents");
  flags.text("--cand-opt", "FLAGS", candidate_options_,
             "flags for the candidate only: --threads, --pin, --chunk, --memory-limit, --experts, --budget, "
             "--policy, --prefetch, --io, --trace, --activations, --kv, --route-bias, --route-bias-prompt, "
             "--reference-kernels");
  flags.text("--ref-opt", "FLAGS", reference_options_, "flags for the reference only");
  flags.integer("--window", "N", options_.window_tokens, {2, 1 << 20},
                "tokens that are read from an empty state before the next begins");
  flags.integer("-n,--tokens", "N", options_.max_tokens, {0, std::numeric_limits<int64_t>::max()},
                "most tokens per text; 0: all");
  flags.toggle(
      "--step", options_.step,
      "the candidate reads token by token, as it would decode: for options that depend on what is in "
      "memory");
  flags.text(
      "--keep-ref", "FILE", kept_,
      "keep what the reference computed in this file, or use it if it is there: the next candidate then "
      "costs one side only, to the same bits");
  flags.section("Result");
  flags.text("--plot", "FILE", plot_, "draw how many positions are how far off (PNG, by gnuplot)");
  flags.number("--limit", "NATS", limit_, {0, 1000}, "exit with 3 when the mean is above");
  flags.integer("--flips", "N", n_flips_, {0, 1 << 20},
                "list this many positions whose likeliest token changed, worst first");
  flags.integer("--seed", "N", options_.bootstrap_seed, {0, std::numeric_limits<int64_t>::max()},
                "of the resampling that makes the interval");
  flags.toggle("--json", json_, "print one JSON object");
  flags.choice("--stats", {"json"}, stats_,
               "the last line on standard error: where the candidate's time and bytes went, one JSON object");
  verbosity_.declare(flags);
}

Result<void> KldCommand::check() {
  TRY(verbosity_.check());
  if (reference_.model.empty()) return Error{Code::kInvalidArgument, "--ref is missing"};
  if (texts_.empty()) return Error{Code::kInvalidArgument, "--text is missing"};
  TRY(parse_options("--cand-opt", candidate_options_, candidate_));
  return parse_options("--ref-opt", reference_options_, reference_);
}

Result<ExitCode> KldCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  const std::unique_ptr<Storage> storage = make_posix_storage();
  std::vector<EvalText> texts;
  for (const std::string& file : texts_)
    texts.push_back({file == "-" ? "stdin" : Path(file).stem().string(), TRY(read_argument(*storage, file))});
  const EngineOptions reference_options = TRY(reference_.resolve());
  Engine reference = TRY(Engine::open(reference_options));
  Engine candidate = TRY(Engine::open(TRY(candidate_.resolve())));
  log_settings(flags);

  std::optional<Progress> progress;
  const auto on_progress = [&](int64_t done, int64_t total) {
    if (!progress)
      progress.emplace("kld", total,
                       ProgressOptions{.style = progress_style(verbosity_), .unit = ProgressUnit::kItems});
    progress->set(done);
  };
  const std::vector<KldWindow> windows = TRY(cut_windows(reference, texts, options_));
  std::unique_ptr<KldReference> source = computed_reference(reference);
  if (kept_) source = TRY(kept_reference(*storage, *kept_, reference, reference_options, windows));
  const KldReport report =
      TRY(measure_kld(*source, candidate, texts, windows, options_, on_progress, interrupt.token()));
  progress.reset();
  if (plot_) TRY(plot_kld(*storage, report, *plot_));
  TRY(reference.finish_trace());
  TRY(candidate.finish_trace());
  if (json_)
    fmt::print("{}\n", as_json(reference, report, candidate.expert_stats(), flags));
  else
    print_table(reference, report);
  if (const auto stats = candidate.expert_stats(); stats && !json_) fmt::print("{}\n", experts_line(*stats));
  if (stats_) {
    JsonWriter json;
    json.begin_object();
    json.key("tokens").integer(report.total.n_tokens);
    write_engine_stats(json, candidate);
    json.end_object();
    fmt::print(stderr, "{}\n", json.text());
  }
  if (!limit_ || report.total.mean <= *limit_) return ExitCode::kDone;
  log::warn("mean KLD {:.6f} is above the limit {}", report.total.mean, *limit_);
  return ExitCode::kMissedGate;
}

void KldCommand::print_table(const Engine& engine, const KldReport& report) const {
  fmt::print("{:<12} {:>8} {:>10} {:>21} {:>10} {:>10} {:>10} {:>8} {:>9} {:>9}\n", "text", "tokens",
             "mean KLD", "95 % interval", "p90", "p99", "max", "top-1", "ref nats", "cand nats");
  const auto row = [](const KldSummary& s) {
    // Of one window nothing can be resampled.
    const std::string interval =
        s.n_windows > 1 ? fmt::format("{:>10.6f} -{:>9.6f}", s.ci_low, s.ci_high) : "one window: none";
    fmt::print("{:<12} {:>8} {:>10.6f} {:>21} {:>10.6f} {:>10.6f} {:>10.6f} {:>6.2f} % {:>9.4f} {:>9.4f}\n",
               s.domain, s.n_tokens, s.mean, interval, s.p90, s.p99, s.max, 100 * s.top1, s.reference_nll,
               s.candidate_nll);
  };
  for (const KldSummary& domain : report.by_domain) row(domain);
  row(report.total);
  const size_t n_shown = std::min<size_t>(report.flips.size(), n_flips_);
  if (n_shown > 0) fmt::print("\n{} changed tokens, the worst {}:\n", report.flips.size(), n_shown);
  const auto text_of = [&](int32_t id) { return gguf::quote(engine.tokenizer()->token_bytes(id, true), 24); };
  for (const KldFlip& flip : std::span(report.flips).first(n_shown))
    fmt::print("  {:<12} token {:>7}  {:>9.6f}  {} -> {}\n", flip.domain, flip.token, flip.kld,
               text_of(flip.reference_id), text_of(flip.candidate_id));
}

std::string KldCommand::as_json(const Engine& engine, const KldReport& report,
                                const std::optional<ExpertCacheStats>& experts,
                                const FlagTable& flags) const {
  JsonWriter json;
  const auto members = [&](const KldSummary& s) {
    json.key("tokens").integer(s.n_tokens).key("windows").integer(s.n_windows);
    json.key("mean_kld").number(s.mean).key("p90_kld").number(s.p90);
    json.key("p99_kld").number(s.p99).key("max_kld").number(s.max);
    json.key("ci95").begin_array().number(s.ci_low).number(s.ci_high).end_array();
    json.key("top1").number(s.top1);
    json.key("reference_nll").number(s.reference_nll).key("candidate_nll").number(s.candidate_nll);
  };
  json.begin_object();
  members(report.total);
  json.key("texts").begin_array();
  for (const KldSummary& domain : report.by_domain) {
    json.begin_object().key("text").string(domain.domain);
    members(domain);
    json.end_object();
  }
  json.end_array();
  json.key("n_flips").integer(report.flips.size());
  json.key("flips").begin_array();
  for (const KldFlip& flip : std::span(report.flips).first(std::min<size_t>(report.flips.size(), n_flips_))) {
    json.begin_object().key("text").string(flip.domain).key("token").integer(flip.token);
    json.key("kld").number(flip.kld);
    json.key("reference_id").integer(flip.reference_id).key("candidate_id").integer(flip.candidate_id);
    json.key("reference").string(engine.tokenizer()->token_bytes(flip.reference_id, true));
    json.key("candidate").string(engine.tokenizer()->token_bytes(flip.candidate_id, true)).end_object();
  }
  json.end_array();
  if (experts) {
    json.key("experts");
    write_expert_stats(json, *experts);
  }
  write_settings(json, flags);
  json.end_object();
  return json.text();
}

}  // namespace

CommandInfo kld_command() {
  return {
      .name = "kld",
      .summary = "measure how far one configuration is from another",
      .usage = "-m CANDIDATE --ref REFERENCE --text FILE... [options]",
      .examples = {{"forebay kld -m q4.gguf --ref bf16.gguf --text chat.txt code.txt", "the price of 4 bits"},
                   {"forebay kld -m q4.gguf --ref bf16.gguf --text a.txt --limit 0.05",
                    "as a gate: exit code 3"},
                   {"forebay kld -m m.gguf --ref m.gguf --ref-opt --reference-kernels --text a.txt",
                    "the price of fast kernels"}},
      .details =
          "Prints the mean KL divergence of the candidate's next-token distributions from the "
          "reference's, in nats per token, with a bootstrap interval over windows, percentiles, how "
          "often the likeliest token is the same, and the texts' own nats per token under both.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<KldCommand>()); }};
}

}  // namespace forebay::cli
