#include "engine/generation.h"

#include <algorithm>

#include <fmt/format.h>

#include "constrain/token_constraint.h"
#include "engine/session_impl.h"

namespace forebay {
namespace {

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Generation::Generation(Session& session, const Tokenizer& tokenizer, std::vector<int32_t> prompt,
                       GenerateOptions options)
    : session_(&session),
      tokenizer_(&tokenizer),
      prompt_(std::move(prompt)),
      options_(std::move(options)),
      decoder_(tokenizer, options_.specials),
      stops_(options_.stop) {}

Result<Generation> Generation::start(Session& session, std::vector<int32_t> prompt, GenerateOptions options) {
  const Engine::Impl& engine = session.impl().engine;
  TRY(validate(options.sampling, engine.info.n_vocab));
  if (!engine.tokenizer)
    return Error{Code::kUnsupported, fmt::format("{}: {}", engine.options.model, engine.no_tokenizer)};
  Generation generation(session, *engine.tokenizer, std::move(prompt), std::move(options));
  generation.report_.prompt = TRY(session.prepare(generation.prompt_));
  generation.prompt_ = session.impl().as_cells(generation.prompt_);
  return generation;
}

bool Generation::in_prompt() const {
  return n_prompt_done() < static_cast<int64_t>(prompt_.size());
}

int64_t Generation::n_prompt_done() const {
  return decoding_since_ ? static_cast<int64_t>(prompt_.size())
                         : static_cast<int64_t>(session_->tokens().size());
}

Feed Generation::next(int64_t most) const {
  if (last_) return {session_, {&*last_, 1}, LogitRows::kLast, -1};
  const int64_t done = n_prompt_done(), total = static_cast<int64_t>(prompt_.size());
  const int64_t n = session_->impl().next_part(done, total, most);
  const int64_t left = total - done - n;
  return {session_, std::span(prompt_).subspan(done, n), left == 0 ? LogitRows::kLast : LogitRows::kNone,
          left};
}

Result<int32_t> Generation::choose() {
  if (!forced_.empty()) {
    const int32_t id = forced_.front();
    forced_.pop_front();
    if (options_.constraint) TRY(options_.constraint->accept(id));
    return id;
  }
  std::span<const float> logits = session_->logits();
  if (TokenConstraint* constraint = options_.constraint.get()) {
    const SequenceState& state = session_->impl().state;
    int64_t left = state.context() - state.n_cells() + 1;
    if (options_.max_tokens >= 0) left = std::min(left, options_.max_tokens - report_.n_generated);
    constraint->set_tokens_left(left);
    masked_.assign(logits.begin(), logits.end());
    constraint->mask(masked_);
    logits = masked_;
  }
  const int32_t id =
      TRY(sample(logits, session_->tokens(), options_.sampling, report_.n_generated, scratch_));
  if (options_.constraint && !tokenizer_->is_stop(id)) TRY(options_.constraint->accept(id));
  return id;
}

void Generation::end(FinishReason reason, const TokenCallback& on_token) {
  if (done_) return;
  done_ = true;
  report_.reason = reason;
  if (decoding_since_) report_.decode_seconds = seconds_between(*decoding_since_, Clock::now());
  const std::string text = stops_.push(decoder_.finish()) + stops_.finish();
  if (!text.empty()) on_token({-1, text, 0, {}});
  session_->end_turn();
}

Result<void> Generation::take(const TokenCallback& on_token) {
  if (!decoding_since_) {
    if (in_prompt()) return {};
    decoding_since_ = Clock::now();
    report_.prompt.seconds = seconds_between(started_, *decoding_since_);
  }
  last_.reset();
  const auto at_limit = [&] {
    return options_.max_tokens >= 0 && report_.n_generated >= options_.max_tokens;
  };
  if (at_limit()) {
    end(FinishReason::kLength, on_token);
    return {};
  }
  const int32_t id = TRY(choose());
  const std::span<const float> logits = session_->logits();
  GeneratedToken token{id, {}, log_prob(logits, id), {}};
  if (options_.top_log_probs > 0) {
    top_.clear();
    for (const TokenLogProb& t : top_log_probs(logits, options_.top_log_probs))
      top_.emplace_back(t.id, t.log_prob);
    token.top = top_;
  }
  ++report_.n_generated;
  n_repeats_ = id == repeated_ ? n_repeats_ + 1 : 1;
  repeated_ = id;
  if (tokenizer_->is_stop(id) && !options_.ignore_stop_tokens) {
    end(FinishReason::kStopToken, on_token);
    return {};
  }
  const std::string text = stops_.push(decoder_.push(id));
  token.text = text;
  const bool wanted = on_token(token);
  if (stops_.matched()) {
    end(FinishReason::kStopString, on_token);
  } else if (!wanted) {
    end(FinishReason::kCancelled, on_token);
  } else if (at_limit()) {
    end(FinishReason::kLength, on_token);
  } else if (options_.max_repeats > 0 && n_repeats_ >= options_.max_repeats) {
    end(FinishReason::kRepetition, on_token);
  } else if (const SequenceState& state = session_->impl().state; state.n_cells() == state.context()) {
    end(FinishReason::kContextFull, on_token);
  } else {
    last_ = id;
  }
  return {};
}

}  // namespace forebay
