// forebay bench: how fast a model runs here, whole.
#include <algorithm>
#include <chrono>
#include <random>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/expert_stats.h"
#include "cli/json_writer.h"
#include "cli/verbosity.h"
#include "core/format.h"
#include "core/interrupt.h"
#include "core/memory_info.h"
#include "core/parse.h"
#include "sampling/sampling.h"

namespace forebay::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// One figure: `tokens` more at `depth` tokens of context.
struct Measured {
  std::string test;  // "prefill", "turn", "decode"
  int64_t tokens = 0;
  int64_t depth = 0;
  std::vector<double> seconds = {};  // one per repetition, ascending
  ExpertCacheStats experts = {};     // of all repetitions

  double median() const { return seconds[seconds.size() / 2]; }
  double rate() const { return static_cast<double>(tokens) / median(); }
};

ExpertCacheStats difference(const ExpertCacheStats& after, const ExpertCacheStats& before) {
  ExpertCacheStats d = after;
  d.n_hits -= before.n_hits;
  d.n_misses -= before.n_misses;
  d.n_evictions -= before.n_evictions;
  d.n_prefetched -= before.n_prefetched;
  d.n_prefetch_used -= before.n_prefetch_used;
  d.bytes_read -= before.bytes_read;
  d.wait_seconds -= before.wait_seconds;
  d.busy_seconds -= before.busy_seconds;
  d.read_seconds -= before.read_seconds;
  return d;
}

Result<std::vector<int64_t>> parse_list(std::string_view flag, const std::string& text, int64_t least) {
  std::vector<int64_t> values;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(',', at), text.size());
    Result<int64_t> value = parse_int(std::string_view(text).substr(at, end - at), least, 1 << 24);
    if (!value) return std::move(value).error().in(flag);
    values.push_back(*value);
    at = end + 1;
  }
  return values;
}

class BenchCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  Result<void> measure_depth(Engine& engine, int64_t depth, std::stop_token stop);
  Result<void> measure(Engine& engine, Measured row, const std::function<Result<double>()>& once);
  void print(const Measured& row) const;

  EngineFlags engine_;
  Verbosity verbosity_;
  std::string prefill_ = "512", turns_, depths_ = "0";
  int64_t n_decode_ = 64;
  int64_t n_repeats_ = 3;
  int64_t seed_ = 1;
  bool json_ = false;
  std::optional<std::string> stats_;

  std::vector<int64_t> n_prefill_, n_turn_, depth_;
  std::vector<int32_t> ids_;
};

void BenchCommand::declare(FlagTable& flags) {
  engine_.activations = "int8";
  engine_.kv = std::nullopt;
  flags.section("What is measured");
  engine_.declare_model(flags);
  flags.text("--prefill", "N,N...", prefill_, "prompts of so many tokens, from an empty state; \"\": none");
  flags.integer("--decode", "N", n_decode_, {0, 1 << 20}, "so many tokens, one at a time; 0: none");
  flags.text("--turns", "N,N...", turns_, "so many new prompt tokens at each depth, as an agent sends them");
  flags.text("--depth", "N,N...", depths_, "tokens of context before --turns and --decode");
  flags.integer("--repeat", "N", n_repeats_, {1, 1000},
                "measure each so often after one warm-up; medians are shown");
  flags.integer("--seed", "N", seed_, {0, std::numeric_limits<int64_t>::max()},
                "of the prompt's random tokens");
  flags.toggle("--json", json_, "print one JSON object per line");
  flags.section("Speed and memory");
  engine_.declare_speed(flags);
  engine_.declare_experts(flags);
  engine_.declare_kernels(flags);
  flags.choice("--stats", {"json"}, stats_,
               "the last line on standard error: where time and bytes went, one JSON object");
  verbosity_.declare(flags);
}

Result<void> BenchCommand::check() {
  TRY(verbosity_.check());
  n_prefill_ = TRY(parse_list("--prefill", prefill_, 1));
  n_turn_ = TRY(parse_list("--turns", turns_, 1));
  depth_ = TRY(parse_list("--depth", depths_, 0));
  return {};
}

Result<ExitCode> BenchCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  int64_t longest = 1;
  for (int64_t n : n_prefill_) longest = std::max(longest, n);
  for (int64_t depth : depth_) {
    longest = std::max(longest, depth + n_decode_ + 1);
    for (int64_t n : n_turn_) longest = std::max(longest, depth + n);
  }
  engine_.context = longest + 1;
  Engine engine = TRY(Engine::open(TRY(engine_.resolve())));
  const Clock::time_point opened = Clock::now();
  engine_.adopt(engine.info());
  std::mt19937_64 random(static_cast<uint64_t>(seed_));
  // Ids of ordinary tokens: the first ones of a vocabulary are not control tokens.
  std::uniform_int_distribution<int32_t> any(0, engine.info().n_vocab * 3 / 4);
  for (int64_t i = 0; i < longest; ++i) ids_.push_back(any(random));

  if (engine.plan() && !verbosity_.quiet) fmt::print(stderr, "{}", engine.plan()->text);
  if (!json_)
    fmt::print("{:<8} {:>7} {:>7} {:>10} {:>9} {:>21}  {}\n", "test", "tokens", "depth", "seconds", "tok/s",
               "slowest - fastest", "experts");
  for (int64_t n : n_prefill_) {
    const auto once = [&]() -> Result<double> {
      Session session = TRY(engine.new_session());
      return TRY(session.sync(std::span(ids_).first(n), {}, interrupt.token())).seconds;
    };
    TRY(measure(engine, {.test = "prefill", .tokens = n}, once));
  }
  for (int64_t depth : depth_) TRY(measure_depth(engine, depth, interrupt.token()));
  TRY(engine.finish_trace());
  if (stats_) {
    JsonWriter json;
    json.begin_object();
    json.key("model").string(engine.info().name);
    write_engine_stats(json, engine, std::chrono::duration<double>(Clock::now() - opened).count());
    json.end_object();
    fmt::print(stderr, "{}\n", json.text());
  }
  if (json_) {
    JsonWriter json;
    json.begin_object();
    json.key("model").string(engine.info().name);
    json.key("memory_bytes").integer(process_memory().anonymous);
    json.key("reserved_bytes").integer(engine.peak_reserved_bytes());
    write_settings(json, flags);
    json.end_object();
    fmt::print("{}\n", json.text());
  } else {
    fmt::print("{}: {} threads, {} memory{}\n", engine.info().name, engine.info().threads,
               human_bytes(process_memory().anonymous),
               engine.info().experts ? fmt::format(", experts: {}", name_of(*engine.info().experts)) : "");
  }
  return ExitCode::kDone;
}

Result<void> BenchCommand::measure_depth(Engine& engine, int64_t depth, std::stop_token stop) {
  if (n_turn_.empty() && n_decode_ == 0) return {};
  Session session = TRY(engine.new_session());
  const auto base = std::span<const int32_t>(ids_).first(std::max<int64_t>(depth, 1));
  TRY(session.sync(base, {}, stop));
  for (int64_t n : n_turn_) {
    // Going back to the base is not part of a turn.
    const auto once = [&]() -> Result<double> {
      TRY(session.sync(base, {}, stop));
      return TRY(session.sync(std::span<const int32_t>(ids_).first(base.size() + n), {}, stop)).seconds;
    };
    TRY(measure(engine, {.test = "turn", .tokens = n, .depth = depth}, once));
  }
  if (n_decode_ == 0) return {};
  // Sampled, so that a model that would repeat itself does not.
  SamplingOptions sampling;
  sampling.temperature = 1;
  sampling.top_k = 0;
  sampling.top_p = 1;
  uint64_t n_sampled = 0;
  std::vector<float> scratch;
  const auto once = [&]() -> Result<double> {
    TRY(session.sync(base, {}, stop));
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < n_decode_; ++i) {
      if (stop.stop_requested()) return Error{Code::kCancelled, "bench: interrupted"};
      const int32_t id = TRY(sample(session.logits(), session.tokens(), sampling, n_sampled++, scratch));
      TRY(session.append(id));
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  return measure(engine, {.test = "decode", .tokens = n_decode_, .depth = depth}, once);
}

Result<void> BenchCommand::measure(Engine& engine, Measured row,
                                   const std::function<Result<double>()>& once) {
  TRY(once());
  const std::optional<ExpertCacheStats> before = engine.expert_stats();
  for (int64_t i = 0; i < n_repeats_; ++i) row.seconds.push_back(TRY(once()));
  std::sort(row.seconds.begin(), row.seconds.end());
  if (before) row.experts = difference(*engine.expert_stats(), *before);
  print(row);
  // The plan is about decoding.
  if (engine.plan() && row.test == "decode" && !verbosity_.quiet)
    fmt::print(stderr, "{}\n", plan_line(*engine.plan(), row.experts, row.rate()));
  return {};
}

void BenchCommand::print(const Measured& row) const {
  const bool streamed = row.experts.budget_bytes > 0;
  if (json_) {
    JsonWriter json;
    json.begin_object();
    json.key("test").string(row.test);
    json.key("tokens").integer(row.tokens);
    json.key("depth").integer(row.depth);
    json.key("tokens_per_second").number(row.rate());
    json.key("seconds").begin_array();
    for (double s : row.seconds) json.number(s);
    json.end_array();
    if (streamed) {
      json.key("bytes_read_per_token")
          .number(static_cast<double>(row.experts.bytes_read) /
                  static_cast<double>(row.tokens * static_cast<int64_t>(row.seconds.size())));
      json.key("experts");
      write_expert_stats(json, row.experts);
    }
    json.end_object();
    fmt::print("{}\n", json.text());
  } else {
    const auto tokens = static_cast<double>(row.tokens);
    fmt::print("{:<8} {:>7} {:>7} {:>10.4f} {:>9.2f} {:>10.2f} - {:>8.2f}  {}\n", row.test, row.tokens,
               row.depth, row.median(), row.rate(), tokens / row.seconds.back(), tokens / row.seconds.front(),
               streamed ? experts_line(row.experts).substr(std::string_view("experts: ").size()) : "");
  }
  std::fflush(stdout);
}

}  // namespace

CommandInfo bench_command() {
  return {.name = "bench",
          .summary = "measure prefill, turns and decode",
          .usage = "[options]",
          .examples = {{"forebay bench", "the embedded model"},
                       {"forebay bench -m big.gguf --budget 10G --turns 64,256,1024 --depth 0,8192",
                        "what an agent feels"}},
          .details =
              "Runs the whole model on random tokens, each measurement once to warm up and then --repeat "
              "times. Tokens per second come from the median.",
          .make = [] { return std::unique_ptr<Command>(std::make_unique<BenchCommand>()); }};
}

}  // namespace forebay::cli
