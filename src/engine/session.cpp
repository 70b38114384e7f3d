// A session keeps one state and knows which tokens it is the state of. A prompt that extends them is
// appended to; one that parts from them goes back to the last snapshot before the parting.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "engine/engine_impl.h"
#include "engine/stop_matcher.h"
#include "sampling/sampling.h"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Recurrent state cannot be cut back: every turn's end of prompt is a place to return to.
constexpr size_t kMaxSnapshots = 4;

/// Prompt tokens that cache-aware routing leaves alone: the question usually stands last.
constexpr int64_t kExactTail = 32;

}  // namespace

struct Session::Impl {
  Impl(Engine::Impl& engine, SequenceState state) : engine(engine), state(std::move(state)) {}

  Engine::Impl& engine;
  SequenceState state;
  std::vector<int32_t> tokens;
  std::vector<Snapshot> snapshots;  // ascending, each of a prefix of `tokens`
  std::span<const float> logits;
  bool logits_valid = false;

  std::string rewind_to(int64_t n_common, int64_t n_prompt);
  Result<void> run(std::span<const int32_t> next, LogitRows rows, bool prompt = false, int64_t n_exact = 0);
  void take_snapshot();
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Engine::new_session() {
  SequenceState state = TRY(impl_->model->new_state(impl_->info.context));
  return Session(std::make_unique<Session::Impl>(*impl_, std::move(state)));
}

std::span<const float> Session::logits() const {
  return impl_->logits;
}
std::span<const int32_t> Session::tokens() const {
  return impl_->tokens;
}

void Session::reset() {
  impl_->state.reset();
  impl_->tokens.clear();
  impl_->snapshots.clear();
  impl_->logits_valid = false;
}

/// Brings the state to a prefix of the prompt that shares its first n_common tokens, and says how.
std::string Session::Impl::rewind_to(int64_t n_common, int64_t n_prompt) {
  const auto n_live = static_cast<int64_t>(tokens.size());
  if (n_live == 0) return "new session";
  // The last token is computed again when its logits are gone.
  const bool whole = n_common == n_live && (n_prompt > n_live || logits_valid);
  if (whole) return n_prompt > n_live ? "extends the live state" : "is the live state";

  const int64_t usable = std::min(n_common, n_prompt - 1);
  while (!snapshots.empty() && snapshots.back().n_cells > usable) snapshots.pop_back();
  if (!snapshots.empty() && state.restore(snapshots.back())) {
    tokens.resize(snapshots.back().n_cells);
    return fmt::format("parts from the live state at {} of {} tokens: restored the snapshot at {}", n_common,
                       n_live, tokens.size());
  }
  state.reset();
  tokens.clear();
  snapshots.clear();
  return fmt::format("parts from the live state at {} of {} tokens, before every snapshot: read again",
                     n_common, n_live);
}

Result<void> Session::Impl::run(std::span<const int32_t> next, LogitRows rows, bool prompt, int64_t n_exact) {
  logits_valid = false;
  const Span span{&state, next, rows, prompt, n_exact};
  Result<ForwardOutput> output = engine.model->forward({&span, 1});
  if (!output) {
    // The model reset the state if it broke it.
    if (state.n_cells() == 0) {
      tokens.clear();
      snapshots.clear();
    }
    return std::move(output).error().in(engine.options.model);
  }
  tokens.insert(tokens.end(), next.begin(), next.end());
  if (rows == LogitRows::kLast) {
    logits = {output->logits.data, static_cast<size_t>(output->logits.cols)};
    logits_valid = true;
  }
  return {};
}

void Session::Impl::take_snapshot() {
  if (!snapshots.empty() && snapshots.back().n_cells == state.n_cells()) return;
  if (snapshots.size() == kMaxSnapshots) snapshots.erase(snapshots.begin());
  snapshots.push_back(state.snapshot());
}

Result<SyncReport> Session::sync(std::span<const int32_t> prompt, const PrefillCallback& progress,
                                 std::stop_token stop) {
  Impl& s = *impl_;
  if (prompt.empty()) return Error{Code::kInvalidArgument, "prompt: no tokens"};
  if (static_cast<int64_t>(prompt.size()) > s.state.context())
    return Error{Code::kInvalidArgument,
                 fmt::format("prompt: {} tokens, the context holds {} (--context raises it)", prompt.size(),
                             s.state.context())};
  const auto start = Clock::now();
  SyncReport report;
  report.n_prompt = static_cast<int64_t>(prompt.size());
  const auto parting = std::mismatch(s.tokens.begin(), s.tokens.end(), prompt.begin(), prompt.end());
  report.why = s.rewind_to(parting.first - s.tokens.begin(), report.n_prompt);
  report.n_reused = static_cast<int64_t>(s.tokens.size());

  int64_t done = report.n_reused;
  while (done < report.n_prompt) {
    if (stop.stop_requested())
      return Error{Code::kCancelled,
                   fmt::format("prompt: cancelled at {} of {} tokens", done, prompt.size())};
    const int64_t n = std::min(s.engine.model->max_window(), report.n_prompt - done);
    const bool last = done + n == report.n_prompt;
    // However the prompt is cut, its last kExactTail tokens are the exact ones.
    const int64_t n_exact = std::clamp<int64_t>(done + n - (report.n_prompt - kExactTail), 0, n);
    TRY(s.run(prompt.subspan(done, n), last ? LogitRows::kLast : LogitRows::kNone, /*prompt=*/true, n_exact));
    done += n;
    if (progress) progress(done, report.n_prompt);
  }
  report.n_prefilled = report.n_prompt - report.n_reused;
  s.take_snapshot();
  report.seconds = seconds_since(start);
  return report;
}

Result<void> Session::append(int32_t token) {
  return impl_->run({&token, 1}, LogitRows::kLast);
}

Result<GenerateReport> Session::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                         const TokenCallback& on_token, const PrefillCallback& progress,
                                         std::stop_token stop) {
  Impl& s = *impl_;
  TRY(validate(options.sampling, s.engine.info.n_vocab));
  if (!s.engine.tokenizer)
    return Error{Code::kUnsupported, fmt::format("{}: {}", s.engine.options.model, s.engine.no_tokenizer)};
  const Tokenizer& tokenizer = *s.engine.tokenizer;

  GenerateReport report;
  report.prompt = TRY(sync(prompt, progress, stop));
  const auto start = Clock::now();
  StreamDecoder decoder(tokenizer, options.specials);
  StopMatcher stops(options.stop);
  std::vector<float> scratch;
  std::vector<std::pair<int32_t, float>> top;
  std::string text;

  const auto finish = [&](FinishReason reason) {
    report.reason = reason;
    report.decode_seconds = seconds_since(start);
    return report;
  };
  const auto flush = [&] {
    text = stops.push(decoder.finish()) + stops.finish();
    if (!text.empty()) on_token({-1, text, 0, {}});
  };

  while (true) {
    if (options.max_tokens >= 0 && report.n_generated >= options.max_tokens) {
      flush();
      return finish(FinishReason::kLength);
    }
    if (stop.stop_requested()) {
      flush();
      return finish(FinishReason::kCancelled);
    }
    const int32_t id = TRY(sample(s.logits, s.tokens, options.sampling, report.n_generated, scratch));
    GeneratedToken token{id, {}, log_prob(s.logits, id), {}};
    if (options.top_log_probs > 0) {
      top.clear();
      for (const TokenLogProb& t : top_log_probs(s.logits, options.top_log_probs))
        top.emplace_back(t.id, t.log_prob);
      token.top = top;
    }
    ++report.n_generated;
    if (tokenizer.is_stop(id) && !options.ignore_stop_tokens) {
      flush();
      return finish(FinishReason::kStopToken);
    }
    text = stops.push(decoder.push(id));
    token.text = text;
    const bool wanted = on_token(token);
    if (stops.matched()) return finish(FinishReason::kStopString);
    if (!wanted) return finish(FinishReason::kCancelled);
    if (s.state.n_cells() == s.state.context()) {
      flush();
      return finish(FinishReason::kContextFull);
    }
    TRY(append(id));
  }
}

}  // namespace forebay
