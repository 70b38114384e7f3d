/// Sessions that keep what follows an edit in the middle (EngineOptions::reuse_edits, docs/reuse.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forebay/engine.h"

#include "core/memory_budget.h"
#include "model/recurrence_log.h"

namespace forebay {

/// What a session remembers to reuse rows after edits. Confined, as the session.
class EditReuse {
 public:
  /// Errors: kOutOfMemory for what has to be remembered of every token.
  static Result<EditReuse> create(Engine::Impl& engine);

  /// Follows the session's recurrent layers; hand it to every forward pass.
  RecurrenceObserver* observer() { return &log_; }
  /// Newlines that are in the state and in no prompt: where they stand among the session's tokens, ascending.
  const std::vector<int64_t>& pads() const { return pads_; }
  /// `prompt` with the pads of the tokens it begins with.
  std::vector<int32_t> with_pads(std::span<const int32_t> tokens, std::span<const int32_t> prompt) const;
  /// The session's tokens were cut to n_tokens.
  void cut(int64_t n_tokens);
  /// From which token on the state is not that of having read every token afresh.
  bool is_exact_to(int64_t n_tokens) const { return n_tokens <= n_exact_; }

  /// Where `prompt` (with pads) is the session's tokens, or what was read up to one of its places, after an
  /// edit, and the policy allows it: makes the edit, counts it in the report and says so in words. Nothing,
  /// with or without words, when everything from where they part is to be read again; the session then holds
  /// a prefix of the prompt or what it held. Errors: those of forward passes.
  struct Outcome {
    bool done = false;
    std::string words;
    int64_t n_moved = 0;
    int64_t n_computed = 0;  // of the prompt's tokens
  };
  Result<Outcome> reuse(Session::Impl& session, std::span<const int32_t> prompt);

 private:
  EditReuse(const ModelConfig& config, RecurrenceLog::Keep keep) : log_(config, keep) {}

  RecurrenceLog log_;
  Reservation reservation_;
  std::vector<int64_t> pads_;
  int64_t n_exact_ = INT64_MAX;
};

}  // namespace forebay
