// A session keeps one state and knows which tokens it is the state of. A prompt that extends them is
// appended to; one that parts from them goes back to the last snapshot before the parting.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "engine/batch.h"
#include "engine/generation.h"
#include "engine/session_impl.h"
#include "engine/stops.h"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

/// What is kept to go back to unless the options say otherwise: as many copies as the plan counts on, and
/// more where copies are small and nothing was planned.
uint64_t usual_snapshot_bytes(uint64_t one, bool planned) {
  constexpr uint64_t kCopies = 4, kSmall = uint64_t{64} << 20;
  return planned ? kCopies * one : std::max(kCopies * one, kSmall);
}

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
  const uint64_t one = state.fixed_bytes() + static_cast<uint64_t>(impl_->info.n_vocab) * sizeof(float) + 64;
  const uint64_t bytes = impl_->options.snapshot_bytes > 0
                             ? impl_->options.snapshot_bytes
                             : usual_snapshot_bytes(one, impl_->plan.has_value());
  return Session(std::make_unique<Session::Impl>(*impl_, std::move(state), bytes));
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
  places.clear();
  stops.clear();
}

std::string Session::Impl::rewind_to(int64_t n_common, int64_t n_prompt) {
  const auto n_live = static_cast<int64_t>(tokens.size());
  if (n_live == 0) return "new session";
  // The last token is computed again when its logits are gone.
  const bool whole = n_common == n_live && (n_prompt > n_live || logits_valid);
  if (whole) return n_prompt > n_live ? "extends the live state" : "is the live state";

  logits_valid = false;
  const std::string parts = fmt::format("parts from the live state at {} of {} tokens", n_common, n_live);
  // The whole prompt is of use where its logits were kept; else its last token is run again.
  const Place* place = places.nearest(n_common);
  if (place != nullptr && place->n_cells() == n_prompt && place->logits.empty())
    place = places.nearest(n_prompt - 1);
  if (const int64_t usable = std::min(n_common, n_prompt - 1); state.rewind(usable)) {
    places.cut(usable);
    tokens.resize(usable);
    return fmt::format("{}: dropped the tokens from {} on", parts, usable);
  }
  if (place != nullptr && state.restore(*place->snapshot)) {
    logits = place->logits;
    logits_valid = !logits.empty();
    tokens.resize(place->n_cells());
    places.cut(place->n_cells());
    return fmt::format("{}: restored the snapshot at {}", parts, tokens.size());
  }
  state.reset();
  forget_lost_state();
  return fmt::format("{}, before every snapshot: read again", parts);
}

int64_t Session::Impl::next_part(int64_t done, int64_t total, int64_t most) const {
  const auto stop = std::upper_bound(stops.begin(), stops.end(), done);
  if (stop != stops.end() && *stop < total && *stop - done <= most) return *stop - done;
  return prompt_part(done, total, most);
}

void Session::Impl::after_part(int64_t n_left) {
  if (!state.is_recurrent()) return;  // rows can be dropped: every cell is a place
  if (n_left == 0)
    places.add(state, logits_valid ? logits : std::vector<float>());
  else if (std::binary_search(stops.begin(), stops.end(), state.n_cells()))
    places.add(state, {});
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
  s.stops.clear();
  if (s.state.is_recurrent()) s.stops = stops_in(prompt, report.n_reused, s.engine.turn_token);
  if (report.n_prefilled == 0) s.after_part(0);
  return report;
}

Result<SyncReport> Session::sync(std::span<const int32_t> prompt, const PrefillCallback& progress,
                                 std::stop_token stop) {
  const auto start = Clock::now();
  SyncReport report = TRY(prepare(prompt));
  int64_t done = report.n_reused;
  while (done < report.n_prompt) {
    if (stop.stop_requested()) return cancelled(done, report.n_prompt);
    const int64_t n = impl_->next_part(done, report.n_prompt, impl_->engine.model->max_window());
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

Result<SyncReport> Session::rewind(int64_t to) {
  const std::vector<int32_t>& all = impl_->tokens;
  if (to < 0 || to > static_cast<int64_t>(all.size()))
    return Error{Code::kInvalidArgument,
                 fmt::format("rewind to token {}: the session has {}", to, all.size())};
  if (to == 0) {
    reset();
    return SyncReport{};
  }
  return sync(std::vector<int32_t>(all.begin(), all.begin() + to));
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
