// forebay replay: what another expert cache would have done with the same tokens.
#include "replay/replay.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/json_writer.h"
#include "cli/verbosity.h"
#include "core/format.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/progress.h"
#include "replay/plot.h"

namespace forebay::cli {
namespace {

class ReplayCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  Result<RouteLog> load(Storage& storage) const;
  void print_table(const RouteLog& log, const std::vector<ReplayRow>& rows) const;
  std::string as_json(const RouteLog& log, const std::vector<ReplayRow>& rows, const FlagTable& flags) const;

  std::string trace_;
  std::string policies_ = "lru,decay,belady";
  std::string slots_ = "10%,25%,50%";
  std::string biases_ = "0", prompt_biases_ = "0", shelves_ = "0";
  std::string half_lives_ = "2000";
  std::optional<std::string> phase_, prune_, plot_;
  std::optional<uint64_t> warm_up_;
  RouteBias bias_;
  double disk_rate_ = 3, disk_latency_us_ = 100, memory_rate_ = 20;
  int64_t threads_ = 0;
  bool json_ = false;
  Verbosity verbosity_;

  ReplayGrid grid_;
  ReplayOptions options_;
};

Result<std::vector<RouteBias>> parse_biases(std::string_view flag, const std::string& list, RouteBias bias) {
  std::vector<RouteBias> biases;
  for (const std::string_view text : split(list)) {
    Result<double> lambda = parse_double(text, 0, 1e6);
    if (!lambda) return std::move(lambda.error()).in(flag);
    bias.lambda = static_cast<float>(*lambda);
    biases.push_back(bias);
  }
  return biases;
}

/// Lines of a block and the experts that it lacks: "3 17 200".
Result<std::vector<ExpertId>> parse_pruned(const std::string& text) {
  std::vector<ExpertId> pruned;
  std::istringstream lines(text);
  int n_lines = 0;
  for (std::string line; std::getline(lines, line);) {
    ++n_lines;
    std::vector<int32_t> numbers;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      Result<int64_t> number = parse_int(word, 0, INT32_MAX);
      if (!number) return std::move(number.error()).in(fmt::format("line {}", n_lines));
      numbers.push_back(static_cast<int32_t>(*number));
    }
    for (size_t i = 1; i < numbers.size(); ++i) pruned.push_back({numbers[0], numbers[i]});
  }
  return pruned;
}

void ReplayCommand::declare(FlagTable& flags) {
  flags.text("TRACE", "FILE", trace_, "what run --trace wrote");
  flags.section("Which caches (lists: every combination is simulated)");
  flags.text("--policy", "LIST", policies_,
             "of decay, lru, lfu, ema, near-pick, inverse, and belady, which knows the future");
  flags.text(
      "--slots", "LIST", slots_,
      "room for experts: a share of all (25%), a number of slots of the mean size (1000), or bytes (8G)");
  flags.text("--route-bias", "LIST", biases_, "score experts in memory 1 + this times higher when decoding");
  flags.text("--route-bias-prompt", "LIST", prompt_biases_,
             "the same in prompts, but for their last 32 tokens and the router's first 4");
  flags.text("--shelf", "LIST", shelves_,
             "shares of the room (6%) that hold experts read ahead for the next block; 0: none are");
  flags.number("--guess-right", "SHARE", options_.guess.right, {0, 1},
               "with --shelf: how many guesses of the next block's experts are right");
  flags.integer("--protect", "N", bias_.protect, {0, kMaxRouteWindow},
                "with --route-bias, the router's first N are always taken");
  flags.integer("--window", "N", bias_.window, {1, kMaxRouteWindow},
                "with a bias, only its first N can be taken");
  flags.text("--half-life", "LIST", half_lives_, "requests after which a use counts half");
  flags.section("What is counted");
  flags.integer("--warmup", "TOKENS", warm_up_, {0, std::numeric_limits<int64_t>::max()},
                "tokens at the start that are counted apart; a quarter of the trace, at most 512, if absent");
  flags.choice("--phase", {"all", "prefill", "decode"}, phase_, "count only these tokens; all are simulated");
  flags.text("--prune", "FILE", prune_, "leave experts out: lines of a block and its experts' numbers");
  flags.section("What it would cost (assumed, not measured)");
  flags.number("--disk-rate", "GB/S", disk_rate_, {1e-6, 1e6}, "reading experts");
  flags.number("--disk-latency", "US", disk_latency_us_, {0, 1e9}, "before a block's first expert arrives");
  flags.number("--memory-rate", "GB/S", memory_rate_, {1e-6, 1e6},
               "computing with experts: reading them from memory");
  flags.section("Result");
  flags.text("--plot", "FILE", plot_, "draw misses against cache size as a PNG, with gnuplot");
  flags.toggle("--json", json_, "print one JSON object");
  flags.integer("-t,--threads", "N", threads_, {0, 1024}, "simulations at a time; 0: one per core");
  verbosity_.declare(flags);
}

Result<void> ReplayCommand::check() {
  TRY(verbosity_.check());
  if (trace_.empty()) return Error{Code::kInvalidArgument, "TRACE is missing"};
  for (const std::string_view name : split(policies_)) {
    Result<std::optional<EvictionPolicy>> policy = replay_policy_from_name(name);
    if (!policy) return std::move(policy.error()).in("--policy");
    grid_.policies.push_back(*policy);
  }
  RouteBias prompt_bias = bias_;
  prompt_bias.protect = 4;
  grid_.biases = TRY(parse_biases("--route-bias", biases_, bias_));
  grid_.prompt_biases = TRY(parse_biases("--route-bias-prompt", prompt_biases_, prompt_bias));
  grid_.shelves.clear();
  for (const std::string_view text : split(shelves_)) {
    const bool percent = text.ends_with('%');
    Result<double> share =
        parse_double(percent ? text.substr(0, text.size() - 1) : text, 0, percent ? 100 : 1);
    if (!share) return std::move(share.error()).in("--shelf");
    grid_.shelves.push_back(percent ? *share / 100 : *share);
  }
  grid_.half_lives.clear();
  for (const std::string_view text : split(half_lives_)) {
    Result<double> half_life = parse_double(text, 1e-3, 1e18);
    if (!half_life) return std::move(half_life.error()).in("--half-life");
    grid_.half_lives.push_back(*half_life);
  }
  if (phase_ == "prefill") options_.phases = ReplayPhases::kPrefill;
  if (phase_ == "decode") options_.phases = ReplayPhases::kDecode;
  options_.cost = {disk_rate_ * 1e9, disk_latency_us_ * 1e-6, memory_rate_ * 1e9};
  return {};
}

Result<RouteLog> ReplayCommand::load(Storage& storage) const {
  std::vector<ExpertId> pruned;
  if (prune_) {
    const std::string text = TRY(read_argument(storage, *prune_));
    Result<std::vector<ExpertId>> parsed = parse_pruned(text);
    if (!parsed) return std::move(parsed.error()).in(*prune_);
    pruned = std::move(parsed).value();
  }
  RouteLog log = TRY(load_route_log(storage, trace_, pruned));
  if (!log.complete) log::warn("{}: it ends without its end mark; what is whole is used", trace_);
  if (log.n_biased_rows > 0)
    log::warn(
        "{}: {} of {} rows did not take the router's first {}: the traced run was biased, and what it read "
        "back "
        "changed what came next",
        trace_, log.n_biased_rows, log.n_rows(), log.header.n_used);
  if (log.n_tokens == 0) return Error{Code::kInvalidArgument, fmt::format("{}: no tokens in it", trace_)};
  return log;
}

Result<ExitCode> ReplayCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  const std::unique_ptr<Storage> storage = make_posix_storage();
  log_settings(flags);
  const RouteLog log = TRY(load(*storage));
  options_.warm_up_tokens = warm_up_.value_or(std::min<uint64_t>(512, log.n_tokens / 4));
  if (options_.warm_up_tokens >= log.n_tokens)
    return Error{Code::kInvalidArgument,
                 fmt::format("--warmup: {} tokens, the trace has {}: nothing would be counted",
                             options_.warm_up_tokens, log.n_tokens)};
  for (const std::string_view text : split(slots_)) {
    Result<uint64_t> budget = parse_slots(log, text);
    if (budget)
      if (Result<void> fits = check_budget(log, *budget); !fits) budget = std::move(fits).error();
    if (!budget) return std::move(budget.error()).in(fmt::format("--slots {}", text));
    grid_.budgets.push_back(*budget);
  }

  ThreadPool pool(static_cast<int>(threads_));
  std::optional<Progress> progress;
  const auto on_progress = [&](size_t done, size_t all) {
    if (!progress)
      progress.emplace("replay", all,
                       ProgressOptions{.style = progress_style(verbosity_), .unit = ProgressUnit::kItems});
    progress->set(done);
  };
  const std::vector<ReplayRow> rows = TRY(replay(log, grid_, options_, pool, on_progress, interrupt.token()));
  progress.reset();
  if (json_)
    fmt::print("{}\n", as_json(log, rows, flags));
  else
    print_table(log, rows);
  if (plot_) TRY(plot_misses(*storage, log, rows, *plot_));
  return ExitCode::kDone;
}

double percent_of_all(const RouteLog& log, uint64_t budget_bytes) {
  return 100 * static_cast<double>(budget_bytes) / static_cast<double>(log.total_slot_bytes());
}

void ReplayCommand::print_table(const RouteLog& log, const std::vector<ReplayRow>& rows) const {
  fmt::print("{}: {} tokens, {} blocks of {} experts, {} per token; the first {} tokens are warm-up\n\n",
             log.header.model.empty() ? trace_ : log.header.model, grouped_digits(log.n_tokens),
             log.n_blocks_with_experts(), log.header.n_experts, log.header.n_used, options_.warm_up_tokens);
  fmt::print("{:<10} {:>9} {:>6} {:>7} {:>5} {:>7} {:>10} {:>13} {:>8} {:>11} {:>9} {:>10}\n", "policy",
             "half-life", "bias", "prompts", "shelf", "slots", "room", "misses/token", "hits", "read/token",
             "to MIN", "ms/token");
  for (const ReplayRow& row : rows) {
    const ReplayConfig& c = row.result.config;
    const bool decays = c.policy && *c.policy != EvictionPolicy::kLru && *c.policy != EvictionPolicy::kLfu;
    const double shelf = 100 * static_cast<double>(c.shelf_bytes) / static_cast<double>(c.budget_bytes);
    fmt::print(
        "{:<10} {:>9} {:>6g} {:>7g} {:>3.0f} % {:>5.1f} % {:>10} {:>13.2f} {:>6.2f} % {:>11} {:>+7.1f} % "
        "{:>10.3f}\n",
        name_of(c.policy), decays ? fmt::format("{:g}", c.half_life) : "-", c.bias.lambda,
        c.prompt_bias.lambda, shelf, percent_of_all(log, c.budget_bytes), human_bytes(c.budget_bytes),
        row.misses_per_token(), 100 * row.hit_rate(),
        human_bytes(static_cast<uint64_t>(row.bytes_per_token())), 100 * row.gap_to_min(),
        1e3 * row.seconds_per_token());
  }
  for (const ReplayRow& row : rows) {
    const ReplayCounts& c = row.result.counted;
    if (row.result.config.shelf_bytes > 0 && c.n_tokens > 0)
      fmt::print("{}, {:.1f} %, {} of it a shelf: {:.2f} experts a token read ahead, {:.2f} of them used\n",
                 name_of(row.result.config.policy), percent_of_all(log, row.result.config.budget_bytes),
                 human_bytes(row.result.config.shelf_bytes),
                 static_cast<double>(c.n_ahead) / static_cast<double>(c.n_tokens),
                 static_cast<double>(c.n_ahead_used) / static_cast<double>(c.n_tokens));
  }
  uint64_t n_forced = 0;
  for (const ReplayRow& row : rows) n_forced = std::max(n_forced, row.result.counted.n_forced);
  if (n_forced > 0)
    fmt::print("\n{} of the misses are forced: fewer than {} of the recorded experts were left.\n",
               grouped_digits(n_forced), log.header.n_used);
}

std::string ReplayCommand::as_json(const RouteLog& log, const std::vector<ReplayRow>& rows,
                                   const FlagTable& flags) const {
  JsonWriter json;
  const auto counts = [&](const ReplayCounts& c) {
    json.begin_object();
    json.key("tokens").integer(c.n_tokens).key("requests").integer(c.n_requests);
    json.key("uses").integer(c.n_uses).key("misses").integer(c.n_misses).key("cold_misses").integer(c.n_cold);
    json.key("forced_misses").integer(c.n_forced).key("swapped").integer(c.n_swapped);
    json.key("read_ahead").integer(c.n_ahead).key("read_ahead_used").integer(c.n_ahead_used);
    json.key("bytes_read").integer(c.bytes_read).key("seconds").number(c.seconds);
    json.end_object();
  };
  json.begin_object();
  json.key("model").string(log.header.model).key("tokens").integer(log.n_tokens);
  json.key("rows").integer(log.n_rows()).key("complete").boolean(log.complete);
  json.key("biased_rows").integer(log.n_biased_rows);
  json.key("blocks").integer(log.n_blocks_with_experts()).key("experts").integer(log.header.n_experts);
  json.key("used").integer(log.header.n_used).key("all_slots_bytes").integer(log.total_slot_bytes());
  json.key("warm_up_tokens").integer(options_.warm_up_tokens);
  json.key("results").begin_array();
  for (const ReplayRow& row : rows) {
    const ReplayConfig& c = row.result.config;
    json.begin_object().key("policy").string(name_of(c.policy));
    json.key("half_life").number(c.half_life).key("route_bias").raw(fmt::format("{:g}", c.bias.lambda));
    json.key("route_bias_prompt").raw(fmt::format("{:g}", c.prompt_bias.lambda));
    json.key("budget_bytes").integer(c.budget_bytes).key("shelf_bytes").integer(c.shelf_bytes);
    json.key("slots_percent").number(percent_of_all(log, c.budget_bytes));
    json.key("misses_per_token").number(row.misses_per_token());
    json.key("bytes_per_token").number(row.bytes_per_token());
    json.key("hit_rate").number(row.hit_rate());
    json.key("gap_to_min").number(row.gap_to_min());
    json.key("seconds_per_token").number(row.seconds_per_token());
    json.key("counted");
    counts(row.result.counted);
    json.key("warm_up");
    counts(row.result.warm_up);
    json.end_object();
  }
  json.end_array();
  write_settings(json, flags);
  json.end_object();
  return json.text();
}

}  // namespace

CommandInfo replay_command() {
  return {
      .name = "replay",
      .summary = "simulate expert caches over a recorded trace",
      .usage = "TRACE [options]",
      .examples = {{"forebay replay run.trace --policy lru,decay,belady --slots 10%,25%,50%", "which policy"},
                   {"forebay replay run.trace --slots 25% --route-bias 0,0.3,0.6", "what a bias saves"},
                   {"forebay replay run.trace --slots 5%,10%,20%,40%,80% --plot misses.png", "a picture"}},
      .details =
          "Reads what the router did for every token and simulates a cache of experts per combination: "
          "misses and "
          "bytes per token, the share of hits, the distance from Belady's MIN (the fewest misses that any "
          "cache "
          "can have when routing is exact), and what the experts would cost in time.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ReplayCommand>()); }};
}

}  // namespace forebay::cli
