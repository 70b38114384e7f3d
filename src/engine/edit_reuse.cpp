#include "engine/edit_reuse.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/session_impl.h"
#include "reuse/edit.h"
#include "reuse/find_edit.h"

namespace forebay {
namespace {

/// Less is read again as fast as it is moved.
constexpr int64_t kLeastMoved = 32;
/// A place so soon after B shows what B has left in the state.
constexpr int64_t kNearJunction = 32;
constexpr int64_t kJunction = 8;

/// The state at or before the end of A: a place, or the empty sequence.
std::shared_ptr<const Snapshot> start_of(const Session::Impl& s, int64_t n_prefix) {
  if (const Place* place = s.places.nearest(n_prefix); place != nullptr) return place->snapshot;
  auto made = std::make_shared<Snapshot>();
  made->fixed.resize(s.state.fixed_bytes() / sizeof(float));
  if (made->fixed.empty()) made->n_cells = n_prefix;  // rows alone: every cell is a place
  return made;
}

/// The first place in C, if it is near B.
std::shared_ptr<const Snapshot> place_after(const Session::Impl& s, int64_t n_old) {
  for (const Place& place : s.places.places())
    if (place.n_cells() >= n_old && place.n_cells() <= n_old + kNearJunction) return place.snapshot;
  return nullptr;
}

/// The longest C that ends the session's tokens or ends at one of its places, and where it ends: templates
/// that write the last answer otherwise than it was given change the end of every prompt.
struct EditAt {
  FoundEdit edit;
  int64_t end = 0;
  std::shared_ptr<const Snapshot> place;  // null: the live state
};
std::optional<EditAt> find_longest(const Session::Impl& s, std::span<const int32_t> prompt) {
  std::optional<EditAt> best;
  const auto consider = [&](int64_t end, std::shared_ptr<const Snapshot> place) {
    const auto before = std::span<const int32_t>(s.tokens).first(static_cast<size_t>(end));
    const std::optional<FoundEdit> found = find_edit(before, prompt, kLeastMoved + kJunction);
    if (found && (!best || found->n_suffix > best->edit.n_suffix))
      best = EditAt{*found, end, std::move(place)};
  };
  consider(static_cast<int64_t>(s.tokens.size()), nullptr);
  for (const Place& place : s.places.places()) consider(place.n_cells(), place.snapshot);
  return best;
}

std::string count(const FoundEdit& edit, int64_t pads) {
  return fmt::format("edited at {}: {} tokens became {}{}", edit.n_prefix, edit.n_removed, edit.n_inserted,
                     pads > 0 ? fmt::format(" and {} newlines", pads) : std::string());
}

}  // namespace

Result<EditReuse> EditReuse::create(Engine::Impl& engine) {
  const ModelConfig& config = engine.model->config();
  const auto keep =
      engine.options.transport_edits ? RecurrenceLog::Keep::kEverything : RecurrenceLog::Keep::kDecays;
  EditReuse out(config, keep);
  const uint64_t bytes =
      RecurrenceLog::bytes_per_cell(config, keep) * static_cast<uint64_t>(engine.info.context);
  if (bytes > 0)
    out.reservation_ = TRY(engine.budget.reserve(bytes, "what edits need to know of every token"));
  return out;
}

std::vector<int32_t> EditReuse::with_pads(std::span<const int32_t> tokens,
                                          std::span<const int32_t> prompt) const {
  std::vector<int32_t> out;
  size_t used = 0, n_real = 0;  // of the prompt; of `out`, up to the last token that is no pad
  auto pad = pads_.begin();
  while (out.size() < tokens.size()) {
    const size_t at = out.size();
    if (pad != pads_.end() && *pad == static_cast<int64_t>(at)) {
      ++pad;
    } else {
      if (used == prompt.size() || prompt[used] != tokens[at]) break;
      ++used;
      n_real = at + 1;
    }
    out.push_back(tokens[at]);
  }
  // Where they part, pads before the parting belong to what is gone.
  if (out.size() < tokens.size()) out.resize(n_real);
  out.insert(out.end(), prompt.begin() + static_cast<ptrdiff_t>(used), prompt.end());
  return out;
}

void EditReuse::cut(int64_t n_tokens) {
  while (!pads_.empty() && pads_.back() >= n_tokens) pads_.pop_back();
  if (n_tokens <= n_exact_) n_exact_ = INT64_MAX;
  log_.truncate(n_tokens);
}

Result<EditReuse::Outcome> EditReuse::reuse(Session::Impl& s, std::span<const int32_t> prompt) {
  const ModelConfig& config = s.engine.model->config();
  const EngineOptions& options = s.engine.options;
  const std::optional<EditAt> at = find_longest(s, prompt);
  if (!at) return Outcome{};
  const FoundEdit* found = &at->edit;
  const int64_t pads = n_pads(config, found->n_removed, found->n_inserted);
  const int64_t n_old = found->n_prefix + found->n_removed;
  const int64_t n_new = found->n_prefix + found->n_inserted + pads;
  const int64_t n_live = at->end;
  if (static_cast<int64_t>(prompt.size()) + pads > s.state.context()) return Outcome{};
  if (config.has_mixer(MixerKind::kGatedDelta) && !log_.covers(n_old, n_live))
    return Outcome{.words = count(*found, pads) + ", but what followed was not read by this session"};

  const std::vector<int32_t> old_tokens(s.tokens.begin(), s.tokens.begin() + n_live);
  std::vector<int32_t> inserted(prompt.begin() + found->n_prefix,
                                prompt.begin() + found->n_prefix + found->n_inserted);
  if (pads > 0) {
    const std::vector<int32_t> newline =
        s.engine.tokenizer ? s.engine.tokenizer->encode("\n") : std::vector<int32_t>();
    if (newline.size() != 1) return Outcome{.words = "edited, but there is no newline to pad with"};
    inserted.insert(inserted.end(), static_cast<size_t>(pads), newline[0]);
  }
  const auto part = [&](int64_t first, int64_t n) {
    return std::span(old_tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(n));
  };
  const Edit edit{part(0, found->n_prefix), part(found->n_prefix, found->n_removed), inserted,
                  part(n_old, found->n_suffix)};
  const std::shared_ptr<const Snapshot> start = start_of(s, found->n_prefix);
  const std::shared_ptr<const Snapshot> after = place_after(s, n_old);
  const RecurrenceLog tail = log_.moved(n_old, n_live, n_old);
  const EditOptions how{.junction = after ? std::max(kJunction, after->n_cells - n_old) : kJunction,
                        .transport = options.transport_edits,
                        .max_staleness = options.max_staleness};
  const int64_t junction = junction_length(config, edit, how.junction);

  // Places beyond the start are of what is edited.
  s.logits_valid = false;
  if (at->place) TRY(s.state.restore(*at->place));
  s.tokens.resize(static_cast<size_t>(n_live));
  s.places.cut(start->n_cells);
  const Result<EditReport> made =
      apply_edit(*s.engine.model, s.state, edit, how, {start.get(), after.get(), &tail, nullptr}, &log_);
  pads_.erase(std::lower_bound(pads_.begin(), pads_.end(), found->n_prefix), pads_.end());
  if (!made) {
    s.tokens.resize(static_cast<size_t>(s.state.n_cells()));  // the start, or nothing
    cut(s.state.n_cells());
    s.forget_lost_state();
    return made.error();
  }
  s.tokens.assign(edit.prefix.begin(), edit.prefix.end());
  s.tokens.insert(s.tokens.end(), inserted.begin(), inserted.end());
  s.tokens.insert(s.tokens.end(), edit.suffix.begin(), edit.suffix.end());
  const std::string stale = made->staleness && !made->staleness->heads.empty()
                                ? fmt::format("{} {:.2g} of the recurrent state is stale",
                                              made->staleness->is_estimate ? "by estimate up to" : "at most",
                                              made->staleness->relative_bound())
                                : std::string("no recurrent state");
  if (made->refused) {
    // Pads are in no prompt: what is read afresh has none.
    if (pads > 0) TRY(s.state.restore(*start));
    s.tokens.resize(static_cast<size_t>(s.state.n_cells()));
    cut(s.state.n_cells());
    return Outcome{.words = fmt::format("{}, and {}, the limit is {:g}: read again", count(*found, pads),
                                        stale, options.max_staleness)};
  }
  for (int64_t i = 0; i < pads; ++i) pads_.push_back(n_new - pads + i);
  n_exact_ = std::min(n_exact_, n_new + junction);
  if (config.has_mixer(MixerKind::kGatedDelta))
    log_.append(tail.moved(n_old + junction, n_live, n_new + junction));
  return Outcome{.done = true,
                 .words = fmt::format("{}, {} moved, {} read; {}", count(*found, pads), made->n_moved,
                                      made->n_prefilled, stale),
                 .n_moved = made->n_moved,
                 .n_computed = found->n_prefix - start->n_cells + found->n_inserted + junction};
}

}  // namespace forebay
