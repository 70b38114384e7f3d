// forebay route-curve: what preferring experts in memory saves and costs on a model, for --max-kld.
#include "eval/route_curve.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/verbosity.h"
#include "core/format.h"
#include "core/interrupt.h"
#include "core/parse.h"
#include "core/progress.h"
#include "eval/kld.h"
#include "gguf/fingerprint.h"

namespace forebay::cli {
namespace {

class RouteCurveCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  EngineFlags engine_;
  std::vector<std::string> texts_;
  std::string biases_ = "0.25,0.5,1,2,4";
  std::vector<float> measured_biases_;
  KldOptions options_{.max_tokens = 2000, .step = true};
  std::optional<std::string> output_, plot_;
  bool json_ = false;
  Verbosity verbosity_;
};

void RouteCurveCommand::declare(FlagTable& flags) {
  flags.section("What is measured");
  engine_.declare_model(flags);
  flags.many("--text", "FILE...", texts_,
             "texts to read, of the kinds that the model will see; tool output and logs show most");
  flags.text("--biases", "LIST", biases_, "values of --route-bias; 0 is measured too");
  flags.integer("-n,--tokens", "N", options_.max_tokens, {0, std::numeric_limits<int64_t>::max()},
                "most tokens per text; 0: all");
  flags.integer("--window", "N", options_.window_tokens, {2, 1 << 20},
                "tokens that are read from an empty state before the next begins");
  flags.section("Experts");
  engine_.declare_placement(flags);
  engine_.declare_speed(flags);
  engine_.declare_kernels(flags);
  flags.section("Result");
  flags.text("-o,--output", "FILE", output_, "write the curve for --route-curve");
  flags.text("--plot", "FILE", plot_, "draw misses against divergence (PNG, by gnuplot)");
  flags.toggle("--json", json_, "print the curve as one JSON object");
  verbosity_.declare(flags);
}

Result<void> RouteCurveCommand::check() {
  TRY(verbosity_.check());
  if (texts_.empty()) return Error{Code::kInvalidArgument, "--text is missing"};
  if (engine_.budget == 0)
    return Error{Code::kInvalidArgument,
                 "--budget is missing: what a bias saves depends on how much is in memory"};
  measured_biases_ = {0};
  for (const std::string_view item : split(biases_)) {
    Result<double> bias = parse_double(item, 0, 1000);
    if (!bias) return std::move(bias.error()).in("--biases");
    measured_biases_.push_back(static_cast<float>(*bias));
  }
  std::sort(measured_biases_.begin(), measured_biases_.end());
  measured_biases_.erase(std::unique(measured_biases_.begin(), measured_biases_.end()),
                         measured_biases_.end());
  return {};
}

Result<ExitCode> RouteCurveCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  const std::unique_ptr<Storage> storage = make_posix_storage();
  std::vector<EvalText> texts;
  for (const std::string& file : texts_)
    texts.push_back({file == "-" ? "stdin" : Path(file).stem().string(), TRY(read_argument(*storage, file))});
  const EngineOptions exact = TRY(engine_.resolve());
  log_settings(flags);

  RouteCurve curve;
  curve.budget_bytes = exact.budget_bytes;
  for (const EvalText& text : texts) curve.texts.push_back(text.domain);

  // The reference is computed once, a window at a time; then every bias, 0 too, reads token by token, as it
  // would decode, and the same model's output head gives the reference's logits again.
  std::vector<KldWindow> windows;
  std::vector<float> rows;
  {
    Engine engine = TRY(Engine::open(exact));
    curve.model = fingerprint(engine.file());
    curve.model_name = engine.info().name;
    windows = TRY(cut_windows(engine, texts, options_));
    rows = TRY(reference_rows(engine, windows, interrupt.token()));
  }
  if (!json_)
    fmt::print("{:>8} {:>10} {:>21} {:>10} {:>9} {:>12} {:>12}\n", "bias", "mean KLD", "95 % interval", "p99",
               "top-1", "misses/token", "read/token");
  for (const float bias : measured_biases_) {
    EngineOptions options = exact;
    options.route_bias = bias;
    Engine engine = TRY(Engine::open(options));
    const std::unique_ptr<KldReference> reference = remembered_reference(engine, rows);
    std::optional<Progress> progress;
    const auto on_progress = [&](int64_t done, int64_t total) {
      if (!progress)
        progress.emplace(fmt::format("bias {:g}", bias), total,
                         ProgressOptions{.style = progress_style(verbosity_), .unit = ProgressUnit::kItems});
      progress->set(done);
    };
    const KldReport report =
        TRY(measure_kld(*reference, engine, texts, windows, options_, on_progress, interrupt.token()));
    progress.reset();
    const std::optional<ExpertCacheStats> stats = engine.expert_stats();
    if (!stats)
      return Error{
          Code::kInvalidArgument,
          fmt::format("{}: its experts are not streamed: there is nothing to prefer", engine.info().path)};
    const auto n_tokens = static_cast<double>(report.total.n_tokens + report.total.n_windows);
    const RouteCurve::Point& point = curve.points.emplace_back(
        RouteCurve::Point{.route_bias = bias,
                          .mean_kld = report.total.mean,
                          .ci_high = report.total.ci_high,
                          .p99_kld = report.total.p99,
                          .misses_per_token = static_cast<double>(stats->n_misses) / n_tokens,
                          .bytes_per_token = static_cast<double>(stats->bytes_read) / n_tokens});
    if (!json_)
      fmt::print("{:>8g} {:>10.6f} {:>10.6f} -{:>9.6f} {:>10.6f} {:>7.2f} % {:>12.2f} {:>12}\n", bias,
                 point.mean_kld, report.total.ci_low, point.ci_high, point.p99_kld, 100 * report.total.top1,
                 point.misses_per_token, human_bytes(static_cast<uint64_t>(point.bytes_per_token)));
  }
  const std::string encoded = encode_route_curve(curve);
  if (output_) {
    AtomicFile file = TRY(AtomicFile::create(*storage, *output_));
    TRY(file.file().append(std::as_bytes(std::span(encoded))));
    TRY(file.commit());
  }
  if (plot_) TRY(plot_route_curve(*storage, curve, *plot_));
  if (json_) fmt::print("{}", encoded);
  return ExitCode::kDone;
}

}  // namespace

CommandInfo route_curve_command() {
  return {
      .name = "route-curve",
      .summary = "measure what preferring experts in memory saves and costs",
      .usage = "-m MODEL --budget SIZE --text FILE... [options]",
      .examples = {{"forebay route-curve -m m.gguf --budget 8G --text ops.txt chat.txt -o curve.json",
                    "measure"},
                   {"forebay run -m m.gguf --budget 8G --max-kld 0.01 --route-curve curve.json",
                    "and use it"}},
      .details =
          "Reads texts token by token under each value of --route-bias and prints the divergence from exact "
          "routing in nats per token beside the experts that had to be read. With -o the curve is kept: "
          "--max-kld of other commands then takes the largest bias that stays below its limit.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<RouteCurveCommand>()); }};
}

}  // namespace forebay::cli
