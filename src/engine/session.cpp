// A session keeps one state and knows which tokens it is the state of. A prompt that extends them is
// appended to; one that parts from them goes back to the last snapshot before the parting.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "engine/batch.h"
#include "engine/generation.h"
#include "engine/session_impl.h"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

/// Recurrent state cannot be cut back: every turn's end of prompt is a place to return to.
constexpr size_t kMaxSnapshots = 4;

Error cancelled(int64_t done, int64_t total) {
  return {Code::kCancelled, fmt::format("prompt: cancelled at {} of {} tokens", done, total)};
}

}  // namespace

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
Session::Impl& Session::impl() {
  return *impl_;
}

void Session::reset() {
  impl_->state.reset();
  impl_->forget_lost_state();
}

void Session::Impl::forget_lost_state() {
  logits_valid = false;
  if (state.n_cells() > 0) return;
  tokens.clear();
  snapshots.clear();
}

std::string Session::Impl::rewind_to(int64_t n_common, int64_t n_prompt) {
  const auto n_live = static_cast<int64_t>(tokens.size());
  if (n_live == 0) return "new session";
  // The last token is computed again when its logits are gone.
  const bool whole = n_common == n_live && (n_prompt > n_live || logits_valid);
  if (whole) return n_prompt > n_live ? "extends the live state" : "is the live state";

  logits_valid = false;
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

void Session::Impl::take_snapshot() {
  if (!snapshots.empty() && snapshots.back().n_cells == state.n_cells()) return;
  if (snapshots.size() == kMaxSnapshots) snapshots.erase(snapshots.begin());
  snapshots.push_back(state.snapshot());
}

Result<SyncReport> Session::prepare(std::span<const int32_t> prompt) {
  Impl& s = *impl_;
  if (prompt.empty()) return Error{Code::kInvalidArgument, "prompt: no tokens"};
  if (static_cast<int64_t>(prompt.size()) > s.state.context())
    return Error{Code::kInvalidArgument,
                 fmt::format("prompt: {} tokens, the context holds {} (--context raises it)", prompt.size(),
                             s.state.context())};
  SyncReport report;
  report.n_prompt = static_cast<int64_t>(prompt.size());
  const auto parting = std::mismatch(s.tokens.begin(), s.tokens.end(), prompt.begin(), prompt.end());
  report.why = s.rewind_to(parting.first - s.tokens.begin(), report.n_prompt);
  report.n_reused = static_cast<int64_t>(s.tokens.size());
  report.n_prefilled = report.n_prompt - report.n_reused;
  if (report.n_prefilled == 0) s.take_snapshot();
  return report;
}

Result<SyncReport> Session::sync(std::span<const int32_t> prompt, const PrefillCallback& progress,
                                 std::stop_token stop) {
  const auto start = Clock::now();
  SyncReport report = TRY(prepare(prompt));
  int64_t done = report.n_reused;
  while (done < report.n_prompt) {
    if (stop.stop_requested()) return cancelled(done, report.n_prompt);
    const int64_t n = prompt_part(done, report.n_prompt, impl_->engine.model->max_window());
    const int64_t left = report.n_prompt - done - n;
    const Feed part{this, prompt.subspan(done, n), left == 0 ? LogitRows::kLast : LogitRows::kNone, left};
    TRY(feed({&part, 1}));
    done += n;
    if (progress) progress(done, report.n_prompt);
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

Result<void> Session::append(int32_t token) {
  const Feed next{this, {&token, 1}, LogitRows::kLast, -1};
  return feed({&next, 1});
}

Result<GenerateReport> Session::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                         const TokenCallback& on_token, const PrefillCallback& progress,
                                         std::stop_token stop) {
  Generation answer = TRY(Generation::start(*this, {prompt.begin(), prompt.end()}, options));
  while (!answer.done()) {
    const bool in_prompt = answer.in_prompt();
    if (stop.stop_requested()) {
      if (in_prompt) return cancelled(answer.n_prompt_done(), answer.report().prompt.n_prompt);
      answer.cancel(on_token);
      break;
    }
    const Feed next = answer.next(impl_->engine.model->max_window());
    if (!next.tokens.empty()) TRY(feed({&next, 1}));
    if (in_prompt && progress) progress(answer.n_prompt_done(), answer.report().prompt.n_prompt);
    TRY(answer.take(on_token));
  }
  return answer.report();
}

}  // namespace forebay
