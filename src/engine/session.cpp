// A session keeps one state and knows which tokens it is the state of. A prompt that extends them is
// appended to; one that parts from them goes back to the last snapshot before the parting.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "engine/batch.h"
#include "engine/generation.h"
#include "engine/session_facts.h"
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

/// The place to go back to for a prompt that shares n_common tokens, or null. The whole prompt is of use
/// where its logits were kept; else its last token is run again.
const Place* usable_place(const SnapshotPool& places, int64_t n_common, int64_t n_prompt) {
  const Place* place = places.nearest(n_common);
  if (place == nullptr || place->n_cells() < n_prompt || !place->logits.empty()) return place;
  return places.nearest(n_prompt - 1);
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
  Session session(std::make_unique<Session::Impl>(*impl_, std::move(state), bytes));
  if (impl_->options.reuse_edits) session.impl().edits = TRY(EditReuse::create(*impl_));
  return session;
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
  impl_->before_overwriting(0);
  impl_->own_files.clear();
  impl_->n_last_prompt = 0;
  impl_->state.reset();
  impl_->forget_lost_state();
}

void Session::Impl::forget_lost_state() {
  logits_valid = false;
  if (state.n_cells() > 0) return;
  exact = true;
  tokens.clear();
  places.clear();
  stops.clear();
  if (edits) edits->cut(0);
}

void Session::Impl::before_overwriting(int64_t n_cells) {
  if (saving.valid() && n_cells < n_saving) saving.wait();
}

int64_t Session::Impl::n_reusable(int64_t n_common, int64_t n_prompt) const {
  const auto n_live = static_cast<int64_t>(tokens.size());
  if (n_common == n_live && (n_prompt > n_live || logits_valid)) return n_live;
  if (const int64_t usable = std::min(n_common, n_prompt - 1); state.can_rewind(usable)) return usable;
  const Place* place = usable_place(places, n_common, n_prompt);
  return place == nullptr ? 0 : place->n_cells();
}

std::string Session::Impl::rewind_to(int64_t n_common, int64_t n_prompt) {
  const auto n_live = static_cast<int64_t>(tokens.size());
  if (n_live == 0) return "new session";
  // The last token is computed again when its logits are gone.
  const bool whole = n_common == n_live && (n_prompt > n_live || logits_valid);
  if (whole) return n_prompt > n_live ? "extends the live state" : "is the live state";

  before_overwriting(n_reusable(n_common, n_prompt));
  logits_valid = false;
  const std::string parts = fmt::format("parts from the live state at {} of {} tokens", n_common, n_live);
  if (const int64_t usable = std::min(n_common, n_prompt - 1); state.rewind(usable)) {
    places.cut(usable);
    tokens.resize(usable);
    return fmt::format("{}: dropped the tokens from {} on", parts, usable);
  }
  const Place* place = usable_place(places, n_common, n_prompt);
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

std::string Session::Impl::load_prefix(std::span<const int32_t> prompt, int64_t n_local, SyncReport& report) {
  // Reading a file costs about as much as a few tokens.
  constexpr int64_t kWorthAFile = 16;
  std::string problem;
  while (true) {
    const PrefixStore::Find found = engine.prefixes->find(prompt, own_files);
    learn_at = found.learn_at > n_local ? found.learn_at : 0;
    if (problem.empty()) problem = found.why_not;
    if (found.n_usable < n_local + kWorthAFile || found.n_usable <= n_local) return problem;
    const auto use = [&]() -> Result<void> {
      SessionReader reader = TRY(engine.prefixes->open_file(found.name));
      before_overwriting(0);
      TRY(load(reader));
      // Rows can be dropped where nothing is recurrent.
      if (found.n_usable < state.n_cells()) {
        TRY(state.rewind(found.n_usable));
        tokens.resize(found.n_usable);
        logits_valid = false;
      }
      return {};
    };
    Result<void> used = use();
    if (used) {
      own_files.insert(found.name);
      report.n_loaded = found.n_usable;
      return fmt::format("loaded {} tokens from {}", found.n_usable, found.name);
    }
    problem = used.error().message;
    if (state.n_cells() == 0) n_local = 0;
    // What cannot be read may come back; what is damaged will not.
    if (used.error().code != Code::kCorrupt) return problem;
    engine.prefixes->discard(found.name, problem);
  }
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
  if (engine.prefixes != nullptr && learn_at > 0 && state.n_cells() == learn_at)
    save_prefix(std::make_shared<Snapshot>(state.snapshot()), {}, /*shared=*/true);
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
  const auto n_live = static_cast<int64_t>(s.tokens.size());
  std::vector<int32_t> cells = s.as_cells(prompt);
  int64_t n_common = 0;
  const auto compare = [&] {
    cells = s.as_cells(prompt);
    n_common =
        std::mismatch(s.tokens.begin(), s.tokens.end(), cells.begin(), cells.end()).first - s.tokens.begin();
  };
  compare();
  if (n_live > s.n_last_prompt && s.n_last_prompt > 0 && n_common < static_cast<int64_t>(cells.size()))
    s.engine.answers_kept = n_common == n_live;
  EditReuse::Outcome edited;
  if (s.edits && n_common < n_live) {
    s.before_overwriting(0);
    edited = TRY(s.edits->reuse(s, cells));
    compare();
  }
  std::string from_file;
  s.learn_at = 0;
  if (s.engine.prefixes != nullptr && !edited.done) {
    const int64_t n_before = n_common;
    from_file = s.load_prefix(prompt, s.n_reusable(n_common, static_cast<int64_t>(cells.size())), report);
    if (report.n_loaded > 0 && n_live > 0)
      from_file += fmt::format(" (parts from the live state at {} of {} tokens)", n_before, n_live);
    compare();  // a file that failed took the state
  }
  if (report.n_loaded > 0) {
    report.why = from_file;
  } else {
    report.why = s.rewind_to(n_common, static_cast<int64_t>(cells.size()));
    if (!from_file.empty()) report.why += "; no file used: " + from_file;
  }
  const auto n_cells = static_cast<int64_t>(s.tokens.size());
  report.n_reused = n_cells - edited.n_computed;
  if (s.edits) {
    s.edits->cut(n_cells);
    s.exact = s.edits->is_exact_to(n_cells);
    report.n_reused -= static_cast<int64_t>(s.edits->pads().size());
    report.n_moved = edited.n_moved;
    if (!edited.words.empty()) report.why = edited.done ? edited.words : edited.words + "; " + report.why;
  }
  s.n_last_prompt = static_cast<int64_t>(cells.size());
  report.n_prefilled = report.n_prompt - report.n_reused;
  s.stops.clear();
  if (s.state.is_recurrent()) {
    s.stops = stops_in(cells, n_cells, s.engine.turn_token);
    // Where a conversation goes on, its next message may be edited.
    const bool goes_on = n_cells > 0 && n_cells == n_live && n_common == n_live && report.n_loaded == 0;
    if (goes_on && !edited.done) s.places.add(s.state, s.logits_valid ? s.logits : std::vector<float>());
  }
  if (s.learn_at > n_cells && s.learn_at < static_cast<int64_t>(cells.size())) {
    const auto at = std::lower_bound(s.stops.begin(), s.stops.end(), s.learn_at);
    if (at == s.stops.end() || *at != s.learn_at) s.stops.insert(at, s.learn_at);
  }
  if (n_cells == static_cast<int64_t>(cells.size())) s.after_part(0);
  return report;
}

Result<SyncReport> Session::sync(std::span<const int32_t> prompt, const PrefillCallback& progress,
                                 std::stop_token stop) {
  const auto start = Clock::now();
  SyncReport report = TRY(prepare(prompt));
  const std::vector<int32_t> cells = impl_->as_cells(prompt);
  auto done = static_cast<int64_t>(impl_->tokens.size());
  const auto total = static_cast<int64_t>(cells.size());
  while (done < total) {
    if (stop.stop_requested()) return cancelled(done, total);
    const int64_t n = impl_->next_part(done, total, impl_->engine.model->max_window());
    const int64_t left = total - done - n;
    const Feed part{this, std::span(cells).subspan(done, n), left == 0 ? LogitRows::kLast : LogitRows::kNone,
                    left};
    TRY(feed({&part, 1}));
    done += n;
    if (progress) progress(done, total);
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
  std::vector<int32_t> prompt(all.begin(), all.begin() + to);
  // Prompts have no pads.
  if (impl_->edits)
    for (auto pad = impl_->edits->pads().rbegin(); pad != impl_->edits->pads().rend(); ++pad)
      if (*pad < to) prompt.erase(prompt.begin() + *pad);
  if (prompt.empty()) return Error{Code::kInvalidArgument, "rewind: nothing but padding is left"};
  return sync(prompt);
}

void Session::Impl::save_prefix(std::shared_ptr<const Snapshot> at, std::vector<float> after, bool shared) {
  const int64_t n = at->n_cells;
  if (!exact || n < PrefixStore::kLeastShared) return;
  PrefixStore::Save save;
  save.image.state = &state;
  save.image.snapshot = std::move(at);
  save.tokens.assign(tokens.begin(), tokens.begin() + n);
  save.logits = std::move(after);
  save.shared = shared;
  std::string name;
  saving = engine.prefixes->save(std::move(save), name);  // in order: the last one ends last
  n_saving = std::max(n_saving, n);
  if (!shared) own_files.insert(name);
}

const Place* Session::Impl::answer_start() const {
  int64_t before_answer = 0;
  for (int64_t i = 0; i < std::min(n_last_prompt, static_cast<int64_t>(tokens.size())); ++i)
    if (tokens[i] == engine.turn_token) before_answer = i;
  return places.nearest(before_answer);
}

void Session::end_turn() {
  Impl& s = *impl_;
  if (s.engine.prefixes == nullptr || s.tokens.empty()) return;
  // Where answers come back otherwise than they were written, the state before the answer is what can be
  // used. Of a prompt that was not read to its end, everything can.
  const bool in_prompt = static_cast<int64_t>(s.tokens.size()) < s.n_last_prompt;
  const bool whole =
      in_prompt || s.engine.answers_kept.value_or(s.engine.turn_token < 0) || !s.state.is_recurrent();
  if (!whole)
    if (const Place* place = s.answer_start(); place != nullptr)
      return s.save_prefix(place->snapshot, place->logits, /*shared=*/false);
  s.save_prefix(std::make_shared<Snapshot>(s.state.snapshot()),
                s.logits_valid ? s.logits : std::vector<float>(), /*shared=*/false);
}

Result<void> Session::save(const std::string& path) const {
  const Impl& s = *impl_;
  if (s.tokens.empty()) return Error{Code::kInvalidArgument, fmt::format("{}: the session is empty", path)};
  // A file is good for whoever has its tokens: it may not hold less than reading them gives.
  if (!s.exact)
    return Error{Code::kUnsupported,
                 fmt::format("{}: not written: after an edit, part of this state was moved instead of read "
                             "(--reuse-edits on), and files hold exact states only",
                             path)};
  SessionImage image{&s.state, nullptr, s.tokens,
                     s.logits_valid ? std::span<const float>(s.logits) : std::span<const float>()};
  // The next prompt parts from this one there if the template renders the answer otherwise than it was
  // written.
  if (const Place* place = s.answer_start(); place != nullptr && place->n_cells() < s.state.n_cells())
    image.places.push_back(place->snapshot);
  TRY(write_session(*s.engine.storage, path, image, {.facts = session_facts(s.engine)}));
  return {};
}

Result<int64_t> Session::load(const std::string& path) {
  Impl& s = *impl_;
  SessionReader reader = TRY(SessionReader::open(*s.engine.storage, path));
  s.before_overwriting(0);
  TRY(s.load(reader));
  s.n_last_prompt = 0;
  return static_cast<int64_t>(s.tokens.size());
}

Result<void> Session::Impl::load(SessionReader& reader) {
  std::vector<Snapshot> known;
  Result<void> loaded = reader.load(state, session_facts(engine), logits, kSessionThreads, &known);
  if (!loaded) {
    forget_lost_state();
    return loaded;
  }
  tokens = reader.header().tokens;
  logits_valid = !logits.empty();
  starts_anew(std::move(known));
  return {};
}

void Session::Impl::starts_anew(std::vector<Snapshot> known) {
  exact = true;
  if (edits) edits->cut(0);
  places.clear();
  stops.clear();
  for (Snapshot& place : known) places.add(std::move(place), {});
  after_part(0);
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
