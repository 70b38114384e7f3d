#include "engine/copy_prefix.h"

#include <algorithm>
#include <cstring>

#include "core/ensure.h"
#include "engine/session_impl.h"

namespace forebay {
namespace {

/// A copy of a recurrent state costs about as much as reading a few tokens.
constexpr int64_t kWorthACopy = 16;

int64_t n_common(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

int64_t copy_prefix(Session& to, const Session& from, std::span<const int32_t> prompt) {
  Session::Impl& t = to.impl();
  const Session::Impl& f = const_cast<Session&>(from).impl();
  ENSURE(&t.engine == &f.engine, "sessions of two engines");
  // Pads stand in the state and in no prompt.
  const auto has_pads = [](const Session::Impl& s) { return s.edits && !s.edits->pads().empty(); };
  if (has_pads(t) || has_pads(f)) return 0;
  const auto n_prompt = static_cast<int64_t>(prompt.size());
  const int64_t n = f.n_reusable(n_common(f.tokens, prompt), n_prompt);
  if (n < t.n_reusable(n_common(t.tokens, prompt), n_prompt) + kWorthACopy) return 0;
  if (!f.exact && !(f.edits && f.edits->is_exact_to(n))) return 0;

  // All of it, or a place in it; without recurrent layers any number of rows.
  const Place* place =
      n < static_cast<int64_t>(f.tokens.size()) && f.state.is_recurrent() ? f.places.nearest(n) : nullptr;
  ENSURE(place == nullptr || place->n_cells() == n, "a place that is not where it was said to be");
  const int64_t n_mtp = std::min(n, place != nullptr ? place->snapshot->n_mtp_cells : f.state.n_mtp_cells());
  t.before_overwriting(0);
  const std::span<const StateSection> ours = t.state.sections(), theirs = f.state.sections();
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::span<const std::byte> source = place != nullptr && theirs[i].is_fixed()
                                                  ? f.state.bytes_in(*place->snapshot, theirs[i])
                                                  : std::span<const std::byte>(theirs[i].bytes);
    const auto n_bytes = static_cast<uint64_t>(theirs[i].n_rows(n, n_mtp)) * theirs[i].row_bytes;
    ENSURE(ours[i].row_bytes == theirs[i].row_bytes && n_bytes <= ours[i].bytes.size(), "another shape");
    std::memcpy(ours[i].bytes.data(), source.data(), n_bytes);
  }
  t.tokens.assign(prompt.begin(), prompt.begin() + n);
  t.state.adopt(t.tokens, n_mtp);
  if (place != nullptr)
    t.logits = place->logits;
  else if (n == static_cast<int64_t>(f.tokens.size()) && f.logits_valid)
    t.logits = f.logits;
  else
    t.logits.clear();
  t.logits_valid = !t.logits.empty();
  // What it was before, it is not any more.
  t.own_files.clear();
  t.n_last_prompt = t.learn_at = 0;
  t.starts_anew();
  return n;
}

}  // namespace forebay
