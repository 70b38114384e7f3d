/// One answer in steps, so that several can be in one window: say what to feed, then take what came out.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forebay/engine.h"

#include "engine/batch.h"
#include "engine/stop_matcher.h"
#include "sampling/sampling.h"
#include "tokenizer/tokenizer.h"

namespace forebay {

/// Session::generate is start(), then feed({next()}) and take() until done(). Between two steps the session
/// must not be used otherwise. Confined to the engine's thread.
class Generation {
 public:
  /// Brings the session to the longest usable prefix of the prompt; computes nothing.
  /// Errors: kInvalidArgument naming the option or the context; kUnsupported without a vocabulary.
  static Result<Generation> start(Session& session, std::vector<int32_t> prompt, GenerateOptions options);

  /// What the session needs next, at most `most` tokens (at least 1); valid until the next call. No tokens:
  /// the logits are there already.
  Feed next(int64_t most) const;
  /// After the feed. In the middle of a prompt nothing happens; else one token is chosen and passed on.
  Result<void> take(const TokenCallback& on_token);

  /// The next tokens will be these, whatever the logits say: the way to close a thought that is too long.
  void force(std::span<const int32_t> ids) { forced_.insert(forced_.end(), ids.begin(), ids.end()); }
  /// Ends the answer; text that was held back is passed on.
  void cancel(const TokenCallback& on_token) { end(FinishReason::kCancelled, on_token); }

  bool done() const { return done_; }
  bool in_prompt() const;
  int64_t n_prompt_done() const;
  const GenerateReport& report() const { return report_; }

 private:
  using Clock = std::chrono::steady_clock;
  Generation(Session& session, const Tokenizer& tokenizer, std::vector<int32_t> prompt,
             GenerateOptions options);
  Result<int32_t> choose();
  void end(FinishReason reason, const TokenCallback& on_token);

  Session* session_;
  const Tokenizer* tokenizer_;
  std::vector<int32_t> prompt_;
  GenerateOptions options_;
  StreamDecoder decoder_;
  StopMatcher stops_;
  SamplingScratch scratch_;
  std::vector<float> masked_;  // logits that a constraint leaves
  std::vector<std::pair<int32_t, float>> top_;
  std::deque<int32_t> forced_;
  std::optional<int32_t> last_;  // chosen, not in the state yet
  int32_t repeated_ = -1;        // the last token, which came n_repeats_ times in a row
  int n_repeats_ = 0;
  Clock::time_point started_ = Clock::now();
  std::optional<Clock::time_point> decoding_since_;
  GenerateReport report_;
  bool done_ = false;
};

}  // namespace forebay
