#include "eval/scr.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "core/ensure.h"
#include "eval/kld.h"
#include "model/model.h"
#include "model/relocate.h"
#include "reuse/edit.h"
#include "sampling/sampling.h"

namespace forebay {
namespace {

using Tokens = std::vector<int32_t>;
using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Tokens joined(std::initializer_list<std::span<const int32_t>> parts) {
  Tokens out;
  for (const auto part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

int64_t length(std::span<const int32_t> tokens) {
  return static_cast<int64_t>(tokens.size());
}

/// Tokens through the model, in windows.
class Runner {
 public:
  Runner(Engine& engine, std::stop_token stop)
      : model_(engine.model()), stop_(std::move(stop)), n_vocab_(engine.info().n_vocab) {}

  Result<void> feed(SequenceState& state, std::span<const int32_t> tokens,
                    RecurrenceObserver* observer = nullptr) {
    return run(state, tokens, observer, nullptr);
  }
  /// [tokens][vocabulary]
  Result<std::vector<float>> logits(SequenceState& state, std::span<const int32_t> tokens) {
    std::vector<float> out;
    TRY(run(state, tokens, nullptr, &out));
    return out;
  }
  /// n likeliest tokens, one after the other, after `first`.
  Result<Tokens> greedy(SequenceState& state, int32_t first, int64_t n) {
    Tokens out;
    while (length(out) < n) {
      const int32_t last = out.empty() ? first : out.back();
      const std::vector<float> next = TRY(logits(state, {&last, 1}));
      out.push_back(argmax(next));
    }
    return out;
  }

 private:
  Result<void> run(SequenceState& state, std::span<const int32_t> tokens, RecurrenceObserver* observer,
                   std::vector<float>* logits) {
    while (!tokens.empty()) {
      if (stop_.stop_requested()) return Error{Code::kCancelled, "scr-test: cancelled"};
      const auto n = std::min<size_t>(tokens.size(), model_.max_window());
      Span span{&state, tokens.first(n), logits != nullptr ? LogitRows::kAll : LogitRows::kNone};
      span.recurrence = observer;
      const ForwardOutput out = TRY(model_.forward({&span, 1}));
      if (logits != nullptr) logits->insert(logits->end(), out.logits.data, out.logits.data + n * n_vocab_);
      tokens = tokens.subspan(n);
    }
    return {};
  }

  Model& model_;
  std::stop_token stop_;
  int64_t n_vocab_;
};

/// Every written row and all recurrent memory of `from`, a state of `tokens`.
void copy_state(const SequenceState& from, const Tokens& tokens, SequenceState& to) {
  const auto source = from.sections(), target = to.sections();
  ENSURE(source.size() == target.size(), "states of different models");
  for (size_t i = 0; i < source.size(); ++i)
    std::memcpy(target[i].bytes.data(), source[i].bytes.data(),
                source[i].is_fixed() ? source[i].bytes.size()
                                     : source[i].n_rows(from.n_cells(), 0) * source[i].row_bytes);
  to.adopt(tokens, 0);
}

int64_t repeated_4_grams(const Tokens& tokens) {
  std::set<Tokens> seen;
  int64_t n = 0;
  for (size_t i = 0; i + 4 <= tokens.size(); ++i)
    n += !seen.insert(Tokens(tokens.begin() + i, tokens.begin() + i + 4)).second;
  return n;
}

/// One test under way.
class ScrTest {
 public:
  ScrTest(Engine& engine, const ScrSpans& spans, const ScrOptions& options, std::stop_token stop)
      : engine_(engine),
        config_(engine.model().config()),
        options_(options),
        run_(engine, stop),
        stop_(std::move(stop)),
        spans_(spans),
        log_(config_, RecurrenceLog::Keep::kEverything) {}

  Result<ScrReport> run(const std::function<void(int64_t, int64_t)>& progress);

 private:
  Result<void> read_old();
  Result<void> read_fresh();
  Result<void> choose_d();
  Result<void> judge(SequenceState& state, ScrRow row);
  Result<void> measure(const std::string& variant, const EditOptions& edit);
  bool recurrent() const { return config_.has_mixer(MixerKind::kGatedDelta); }
  Result<SequenceState> new_state() { return engine_.model().new_state(context_); }

  Engine& engine_;
  const ModelConfig& config_;
  const ScrOptions& options_;
  Runner run_;
  std::stop_token stop_;
  ScrSpans spans_;   // B' with its pads, D as long as it is judged
  Tokens unpadded_;  // B' as it came
  int64_t context_ = 0;

  std::optional<SequenceState> old_, fresh_, work_;
  Snapshot after_a_, after_b_;
  RecurrenceLog log_;
  RecurrentCopy exact_;
  double fresh_seconds_ = 0;
  std::vector<float> want_;  // logits of D, fresh
  ScrReport report_;
};

Result<void> ScrTest::read_old() {
  old_ = TRY(new_state());
  TRY(run_.feed(*old_, spans_.a, &log_));
  after_a_ = old_->snapshot();
  TRY(run_.feed(*old_, spans_.b, &log_));
  after_b_ = old_->snapshot();
  TRY(run_.feed(*old_, spans_.c, &log_));
  report_.log_bytes =
      recurrent() ? log_.moved(length(spans_.a) + length(spans_.b), old_->n_cells(), 0).bytes() : 0;
  return {};
}

Result<void> ScrTest::read_fresh() {
  fresh_ = TRY(new_state());
  TRY(run_.feed(*fresh_, spans_.a));
  const auto start = Clock::now();
  TRY(run_.feed(*fresh_, spans_.b_new));
  TRY(run_.feed(*fresh_, spans_.c));
  fresh_seconds_ = seconds_since(start);
  exact_ = RecurrentCopy::of(*fresh_, config_);
  return {};
}

/// D as it is judged: as given, continued to min_positions by the fresh run.
Result<void> ScrTest::choose_d() {
  const Tokens all = joined({spans_.a, spans_.b_new, spans_.c});
  if (spans_.d.empty()) {
    // The likeliest token after C: of the same tokens, but for the last.
    SequenceState state = TRY(new_state());
    TRY(run_.feed(state, std::span(all).first(all.size() - 1)));
    const std::vector<float> next = TRY(run_.logits(state, std::span(all).last(1)));
    spans_.d.push_back(argmax(next));
  }
  if (length(spans_.d) < options_.min_positions) {
    copy_state(*fresh_, all, *work_);
    TRY(run_.feed(*work_, std::span(spans_.d).first(spans_.d.size() - 1)));
    const Tokens more = TRY(run_.greedy(*work_, spans_.d.back(), options_.min_positions - length(spans_.d)));
    spans_.d.insert(spans_.d.end(), more.begin(), more.end());
  }
  report_.n_d = length(spans_.d);
  copy_state(*fresh_, all, *work_);
  want_ = TRY(run_.logits(*work_, spans_.d));
  return {};
}

/// Completes the row from a state of A B' C and keeps it.
Result<void> ScrTest::judge(SequenceState& state, ScrRow row) {
  const int64_t V = engine_.info().n_vocab;
  SequenceState* generating = nullptr;
  std::optional<SequenceState> copy;
  if (options_.n_generate > 0) {
    copy = TRY(new_state());
    copy_state(state, joined({spans_.a, row.variant == "no pads" ? unpadded_ : spans_.b_new, spans_.c}),
               *copy);
    generating = &*copy;
  }
  const std::vector<float> got = TRY(run_.logits(state, spans_.d));
  std::vector<double> klds;
  double nll = 0;
  int64_t same = 0;
  for (int64_t t = 0; t < report_.n_d; ++t) {
    const std::span<const float> p(want_.data() + t * V, V), q(got.data() + t * V, V);
    klds.push_back(kl_divergence(p, q));
    same += argmax(p) == argmax(q);
    if (t + 1 < report_.n_d) nll -= log_prob(q, spans_.d[t + 1]);
  }
  std::sort(klds.begin(), klds.end());
  for (double kld : klds) row.mean += kld / static_cast<double>(report_.n_d);
  row.p90 = klds[std::min<size_t>(klds.size() - 1, klds.size() * 9 / 10)];
  row.max = klds.back();
  row.top1 = static_cast<double>(same) / static_cast<double>(report_.n_d);
  row.perplexity = std::exp(nll / static_cast<double>(std::max<int64_t>(report_.n_d - 1, 1)));
  row.speedup = row.seconds > 0 ? fresh_seconds_ / row.seconds : 0;
  if (generating != nullptr)
    row.n_repeated = repeated_4_grams(TRY(run_.greedy(*generating, spans_.d[0], options_.n_generate)));
  report_.rows.push_back(std::move(row));
  return {};
}

Result<void> ScrTest::measure(const std::string& variant, const EditOptions& options) {
  copy_state(*old_, joined({spans_.a, spans_.b, spans_.c}), *work_);
  const Edit edit{spans_.a, spans_.b, spans_.b_new, spans_.c};
  const EditReport done =
      TRY(apply_edit(engine_.model(), *work_, edit, options,
                     {&after_a_, &after_b_, recurrent() ? &log_ : nullptr, &exact_}, nullptr, {}, stop_));
  if (options.transport && report_.staleness.heads.empty()) report_.staleness = *done.staleness;
  ScrRow row;
  row.variant = variant;
  row.junction = length(spans_.c) - done.n_moved;
  row.seconds = done.seconds;
  row.n_prefilled = done.n_prefilled;
  return judge(*work_, row);
}

Result<ScrReport> ScrTest::run(const std::function<void(int64_t, int64_t)>& progress) {
  if (spans_.c.empty()) return Error{Code::kInvalidArgument, "scr-test: C is empty: nothing could be moved"};
  unpadded_ = spans_.b_new;
  report_.n_pads = n_pads(config_, length(spans_.b), length(spans_.b_new));
  report_.n_a = length(spans_.a);
  report_.n_b = length(spans_.b);
  report_.n_b_new = length(spans_.b_new);
  report_.n_c = length(spans_.c);
  if (report_.n_pads > 0) {
    const Tokens newline = TRY(engine_.tokenize("\n"));
    ENSURE(!newline.empty(), "a vocabulary without a newline");
    spans_.b_new.insert(spans_.b_new.end(), report_.n_pads, newline[0]);
  }
  context_ = report_.n_a + std::max(report_.n_b, length(spans_.b_new)) + report_.n_c +
             std::max<int64_t>(length(spans_.d), options_.min_positions) + options_.n_generate + 1;

  const int64_t per_junction = recurrent() ? 4 : 1;
  const int64_t total =
      4 + (report_.n_pads > 0) + per_junction * static_cast<int64_t>(options_.junctions.size());
  int64_t done = 0;
  const auto step = [&] {
    if (progress) progress(++done, total);
  };
  work_ = TRY(new_state());
  TRY(read_old());
  step();
  TRY(read_fresh());
  TRY(choose_d());
  step();
  const Tokens all = joined({spans_.a, spans_.b_new, spans_.c});
  copy_state(*fresh_, all, *work_);
  ScrRow fresh;
  fresh.variant = "fresh";
  fresh.junction = report_.n_c;
  fresh.seconds = fresh_seconds_;
  fresh.n_prefilled = length(spans_.b_new) + report_.n_c;
  TRY(judge(*work_, fresh));
  step();
  TRY(measure("sanity", {.recurrent = Recurrent::kLossy, .junction = report_.n_c}));
  step();
  if (report_.n_pads > 0) {
    SequenceState state = TRY(new_state());
    TRY(run_.feed(state, spans_.a));
    const auto start = Clock::now();
    TRY(run_.feed(state, unpadded_));
    TRY(run_.feed(state, spans_.c));
    ScrRow row;
    row.variant = "no pads";
    row.junction = report_.n_c;
    row.seconds = seconds_since(start);
    row.n_prefilled = length(unpadded_) + report_.n_c;
    TRY(judge(state, row));
    step();
  }
  for (const int64_t junction : options_.junctions) {
    TRY(measure("keep", {.recurrent = Recurrent::kKeep, .junction = junction}));
    step();
    if (!recurrent()) continue;
    TRY(measure("keep + transport",
                {.recurrent = Recurrent::kKeep, .junction = junction, .transport = true}));
    step();
    TRY(measure("exact-state", {.recurrent = Recurrent::kExact, .junction = junction}));
    step();
    TRY(measure("lossy", {.recurrent = Recurrent::kLossy, .junction = junction}));
    step();
  }
  return std::move(report_);
}

}  // namespace

Result<ScrReport> measure_scr(Engine& engine, const ScrSpans& spans, const ScrOptions& options,
                              const std::function<void(int64_t, int64_t)>& progress, std::stop_token stop) {
  ScrTest test(engine, spans, options, std::move(stop));
  return test.run(progress);
}

std::string half_life_script(const Staleness& staleness, const std::string& title,
                             const std::string& output) {
  constexpr int kBars = 14;  // up to 1, 2, 4, ... tokens, and longer
  std::vector<int> bars(kBars + 1);
  for (const HeadStaleness& head : staleness.heads) {
    const double bar = std::ceil(std::log2(std::max(head.half_life(staleness.n_cells), 1.0)));
    ++bars[static_cast<int>(std::min<double>(bar, kBars))];
  }
  std::string script = "set terminal png size 900,520\nset output " + output + "\n";
  script += "set title " + title + " noenhanced\n";
  script += "set xlabel 'half-life of a memory, at most so many tokens'\nset ylabel 'heads'\n";
  script += "set grid y\nset yrange [0:1<*]\nset style fill solid 0.6\nset boxwidth 0.8\nunset key\n";
  script += "$heads << EOD\n";
  for (int i = 0; i <= kBars; ++i)
    script += fmt::format("{} {} \"{}{}\"\n", i, bars[i], i < kBars ? "" : "> ",
                          i < kBars ? 1 << i : 1 << (kBars - 1));
  script += "EOD\nset xtics rotate by -45\nplot $heads using 1:2:xtic(3) with boxes\n";
  return script;
}

}  // namespace forebay
