/// One forward pass over several sessions: a part of one's prompt, the next token of others.
#pragma once

#include <cstdint>
#include <span>

#include "forebay/engine.h"

#include "model/window.h"

namespace forebay {

/// The next tokens of one session.
struct Feed {
  Session* session = nullptr;
  std::span<const int32_t> tokens;      // at least one
  LogitRows logits = LogitRows::kLast;  // kept by the session: Session::logits()
  int64_t n_prompt_left = -1;           // of a prompt: how many of its tokens follow these; else -1
};

/// Appends every feed's tokens to its session: at most Model::max_window tokens in all, of sessions of one
/// engine, each named once. A session's logits are those that it would have alone, bit for bit.
/// Errors: as Model::forward; a pass that fails half-way empties all of its sessions.
Result<void> feed(std::span<const Feed> feeds);

/// Of `n` tokens of a prompt, of which n_left follow: how many at the end are routed exactly where
/// cache-aware routing is on. However a prompt is cut, they are its last 32.
int64_t n_exact_rows(int64_t n, int64_t n_left);

/// How many tokens the next part of a prompt has, of which `done` of `total` are in the state: at most
/// `most`, and it ends where cells are a multiple of 64 unless it is the last or fewer are allowed.
int64_t prompt_part(int64_t done, int64_t total, int64_t most);

}  // namespace forebay
