#include "engine/batch.h"

#include <algorithm>
#include <chrono>

#include "core/ensure.h"
#include "engine/session_impl.h"

namespace forebay {
namespace {

/// Prompt tokens that cache-aware routing leaves alone: the question usually stands last.
constexpr int64_t kExactTail = 32;
constexpr int64_t kPartCells = 64;

}  // namespace

int64_t n_exact_rows(int64_t n, int64_t n_left) {
  return std::clamp<int64_t>(kExactTail - n_left, 0, n);
}

int64_t prompt_part(int64_t done, int64_t total, int64_t most) {
  const int64_t rest = total - done;
  if (rest <= most || most < kPartCells) return std::min(rest, most);
  const int64_t end = done + most;
  return end - end % kPartCells - done;
}

Result<void> feed(std::span<const Feed> feeds) {
  ENSURE(!feeds.empty(), "a pass over no session");
  Engine::Impl& engine = feeds[0].session->impl().engine;
  std::vector<Span>& window = engine.window;
  window.clear();
  for (const Feed& f : feeds) {
    Session::Impl& s = f.session->impl();
    ENSURE(&s.engine == &engine, "sessions of two engines in one pass");
    s.logits_valid = false;
    const auto n = static_cast<int64_t>(f.tokens.size());
    const bool prompt = f.n_prompt_left >= 0;
    const int64_t n_exact = prompt ? n_exact_rows(n, f.n_prompt_left) : 0;
    window.push_back(
        {&s.state, f.tokens, f.logits, prompt, n_exact, s.edits ? s.edits->observer() : nullptr});
  }
  const auto start = std::chrono::steady_clock::now();
  const Result<ForwardOutput> output = engine.model->forward(window);
  engine.forward_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!output) {
    for (const Feed& f : feeds) f.session->impl().forget_lost_state();
    return Error(output.error()).in(engine.options.model);
  }

  int64_t row = 0;
  for (const Feed& f : feeds) {
    Session::Impl& s = f.session->impl();
    s.tokens.insert(s.tokens.end(), f.tokens.begin(), f.tokens.end());
    const int64_t n_rows = f.logits == LogitRows::kAll    ? static_cast<int64_t>(f.tokens.size())
                           : f.logits == LogitRows::kLast ? 1
                                                          : 0;
    row += n_rows;
    if (n_rows > 0) {
      const float* last = output->logits.row(row - 1);
      s.logits.assign(last, last + output->logits.cols);
      s.logits_valid = true;
    }
    if (f.n_prompt_left >= 0) s.after_part(f.n_prompt_left);
  }
  return {};
}

}  // namespace forebay
