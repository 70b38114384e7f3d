// forebay scr-test: what reusing rows after an edit in the middle costs, in nats, and saves, in seconds.
#include "eval/scr.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/input.h"
#include "cli/json_writer.h"
#include "cli/verbosity.h"
#include "core/gnuplot.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/parse.h"
#include "core/progress.h"
#include "eval/scr_case.h"

namespace forebay::cli {
namespace {

class ScrTestCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  bool has_files() const { return !prefix_.empty() || !removed_.empty() || !suffix_.empty(); }
  Result<ScrCase> read_case(Storage& storage, const Engine& engine) const;
  void print_table(const ScrCase& scr, const ScrReport& report) const;
  std::string as_json(const ScrCase& scr, const ScrReport& report, const FlagTable& flags) const;

  EngineFlags engine_;
  std::string conversation_;
  std::optional<int64_t> edit_;
  std::string prefix_, removed_, inserted_, suffix_, after_;
  std::string junctions_ = "0,8,16";
  ScrOptions options_;
  std::string plot_;
  bool json_ = false;
  Verbosity verbosity_;
};

void ScrTestCommand::declare(FlagTable& flags) {
  flags.section("The edit: [A B C] becomes [A B' C], then D");
  engine_.declare_model(flags);
  flags.text("--conversation", "FILE", conversation_,
             "a chat as JSON, before the edit; a last message of the assistant is D; - is standard input");
  flags.integer("--edit", "N", edit_, {0, 1 << 20},
                "with --conversation: which of its \"edits\", from 0; without such a list, the message whose "
                "reasoning, or all but whose first line, is taken away; absent: 0");
  flags.text("-A", "FILE", prefix_, "what stands before the edit, as a text; control tokens are parsed");
  flags.text("-B", "FILE", removed_, "what is removed");
  flags.text("--B2", "FILE", inserted_, "what takes its place; absent: nothing");
  flags.text("-C", "FILE", suffix_, "what follows and is moved");
  flags.text("-D", "FILE", after_, "what is read or said next; absent: what the model says");
  flags.section("Measurement");
  flags.text("-J,--junctions", "LIST", junctions_,
             "tokens of C that are computed again, one run each; rounded up to where an index block ends");
  flags.integer("--positions", "N", options_.min_positions, {2, 1 << 20},
                "D is continued to at least so many tokens by the run that reads everything afresh");
  flags.integer("--generate", "N", options_.n_generate, {0, 1 << 20},
                "greedy tokens after every variant, to count repeated 4-grams in; 0: none");
  engine_.declare_speed(flags);
  engine_.declare_experts(flags);
  engine_.declare_kernels(flags);
  flags.section("Result");
  flags.text("--plot", "FILE", plot_, "draw how many heads have which half-life over C, a PNG");
  flags.toggle("--json", json_, "print one JSON object");
  verbosity_.declare(flags);
}

Result<std::vector<int64_t>> parse_junctions(std::string_view text) {
  std::vector<int64_t> out;
  while (true) {
    const size_t comma = text.find(',');
    out.push_back(TRY(parse_int(text.substr(0, comma), 0, 1 << 20)));
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
}

Result<void> ScrTestCommand::check() {
  TRY(verbosity_.check());
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (conversation_.empty() && !has_files()) return refuse("no edit: --conversation, or -A, -B and -C");
  if (!conversation_.empty() && (has_files() || !inserted_.empty() || !after_.empty()))
    return refuse("--conversation and -A, -B, --B2, -C, -D exclude each other");
  if (conversation_.empty() && edit_) return refuse("--edit needs --conversation");
  if (conversation_.empty() && suffix_.empty()) return refuse("-C is missing: what follows the edit");
  Result<std::vector<int64_t>> junctions = parse_junctions(junctions_);
  if (!junctions) return std::move(junctions).error().in("--junctions");
  options_.junctions = std::move(junctions).value();
  return {};
}

Result<ScrCase> ScrTestCommand::read_case(Storage& storage, const Engine& engine) const {
  if (!conversation_.empty()) {
    const std::string json = TRY(read_argument(storage, conversation_));
    Result<ScrCase> scr = scr_case_from_conversation(engine, json, edit_.value_or(0));
    if (!scr) return std::move(scr).error().in(conversation_);
    return scr;
  }
  ScrCase scr{.name = "files", .kind = {}, .spans = {}};
  const auto read = [&](const std::string& file, std::vector<int32_t>& tokens) -> Result<void> {
    if (file.empty()) return {};
    const std::string text = TRY(read_argument(storage, file));
    tokens = TRY(engine.tokenize(text));
    return {};
  };
  TRY(read(prefix_, scr.spans.a));
  TRY(read(removed_, scr.spans.b));
  TRY(read(inserted_, scr.spans.b_new));
  TRY(read(suffix_, scr.spans.c));
  TRY(read(after_, scr.spans.d));
  return scr;
}

Result<ExitCode> ScrTestCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  const std::unique_ptr<Storage> storage = make_posix_storage();
  Engine engine = TRY(Engine::open(TRY(engine_.resolve())));
  engine_.adopt(engine.info());
  log_settings(flags);
  const ScrCase scr = TRY(read_case(*storage, engine));

  std::optional<Progress> progress;
  const auto on_progress = [&](int64_t done, int64_t total) {
    if (!progress)
      progress.emplace("scr-test", total,
                       ProgressOptions{.style = progress_style(verbosity_), .unit = ProgressUnit::kItems});
    progress->set(done);
  };
  const ScrReport report = TRY(measure_scr(engine, scr.spans, options_, on_progress, interrupt.token()));
  if (progress) progress->finish();
  if (!plot_.empty()) {
    const std::string title = fmt::format("{}: {} tokens of C", engine.info().name, report.n_c);
    TRY(draw_png(*storage, plot_, [&](const Path& output) {
      return half_life_script(report.staleness, gnuplot_quoted(title), gnuplot_quoted(output.string()));
    }));
  }
  if (json_)
    fmt::print("{}\n", as_json(scr, report, flags));
  else
    print_table(scr, report);
  return ExitCode::kDone;
}

void ScrTestCommand::print_table(const ScrCase& scr, const ScrReport& r) const {
  fmt::print("{}{}{}: A {}, B {}, B' {}, pads {}, C {}, D {} tokens\n", scr.name,
             scr.kind.empty() ? "" : ", ", scr.kind, r.n_a, r.n_b, r.n_b_new, r.n_pads, r.n_c, r.n_d);
  fmt::print("{:<17} {:>4} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>7} {:>7} {:>8}\n", "variant", "J",
             "mean KLD", "p90", "max", "top-1", "PPL", "seconds", "speedup", "tokens", "repeats");
  for (const ScrRow& row : r.rows)
    fmt::print(
        "{:<17} {:>4} {:>10.6f} {:>10.6f} {:>10.6f} {:>6.2f} % {:>8.3f} {:>8.3f} {:>7.2f} {:>7} {:>8}\n",
        row.variant, row.junction, row.mean, row.p90, row.max, 100 * row.top1, row.perplexity, row.seconds,
        row.speedup, row.n_prefilled, options_.n_generate > 0 ? std::to_string(row.n_repeated) : "-");
  if (!r.staleness.heads.empty())
    fmt::print(
        "after C, {:.1f} % of heads and {:.1f} % of the state's energy remember B; the direct term is at "
        "most "
        "{:.2g} of the state\n",
        100 * r.staleness.share_of_heads(), 100 * r.staleness.share_of_energy(),
        r.staleness.relative_bound());
}

std::string ScrTestCommand::as_json(const ScrCase& scr, const ScrReport& r, const FlagTable& flags) const {
  JsonWriter json;
  json.begin_object();
  json.key("name").string(scr.name);
  json.key("kind").string(scr.kind);
  json.key("tokens").begin_object();
  json.key("a").integer(r.n_a).key("b").integer(r.n_b).key("b_new").integer(r.n_b_new);
  json.key("pads").integer(r.n_pads).key("c").integer(r.n_c).key("d").integer(r.n_d);
  json.end_object();
  json.key("rows").begin_array();
  for (const ScrRow& row : r.rows) {
    json.begin_object();
    json.key("variant").string(row.variant);
    json.key("junction").integer(row.junction);
    json.key("mean_kld").number(row.mean).key("p90_kld").number(row.p90).key("max_kld").number(row.max);
    json.key("top1").number(row.top1);
    json.key("perplexity").number(row.perplexity);
    json.key("seconds").number(row.seconds);
    json.key("speedup").number(row.speedup);
    json.key("prefilled_tokens").integer(row.n_prefilled);
    json.key("repeated_4grams").integer(row.n_repeated);
    json.end_object();
  }
  json.end_array();
  json.key("staleness").begin_object();
  json.key("share_of_heads").number(r.staleness.share_of_heads());
  json.key("share_of_energy").number(r.staleness.share_of_energy());
  json.key("relative_bound").number(r.staleness.relative_bound());
  json.key("log_bytes").integer(r.log_bytes);
  json.key("heads").begin_array();
  for (const HeadStaleness& head : r.staleness.heads) {
    json.begin_object();
    json.key("block").integer(head.block).key("head").integer(head.head);
    json.key("sum_log_decay").number(head.sum_log_decay);
    json.key("half_life").number(head.half_life(r.staleness.n_cells));
    json.key("norm").number(head.norm).key("difference").number(head.difference);
    json.end_object();
  }
  json.end_array().end_object();
  write_settings(json, flags);
  json.end_object();
  return json.text();
}

}  // namespace

CommandInfo scr_test_command() {
  return {
      .name = "scr-test",
      .summary = "measure the reuse of rows after an edit in the middle",
      .usage = "--conversation FILE [--edit N] [options]",
      .examples = {{"forebay scr-test --conversation chat.json --edit 2", "the third edit of a saved chat"},
                   {"forebay scr-test -m m.gguf -A a.txt -B b.txt --B2 b2.txt -C c.txt", "from texts"}},
      .details =
          "Edits a sequence whose end is reused: C's rows are moved, the recurrent layers' memory is kept "
          "(of A B C), transported, taken from a true run (exact-state) or left as it is before C (lossy). "
          "Prints how far the predictions of D are from those after reading everything afresh, and what was "
          "saved. The sanity row computes all of C again and must be 0.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ScrTestCommand>()); }};
}

}  // namespace forebay::cli
