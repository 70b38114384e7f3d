// A constraint that waits for the end of the thinking.
#include <algorithm>
#include <limits>

#include "constrain/constrain.h"

namespace forebay {
namespace {

/// Tokens kept for a thought's last words and the closing tag.
constexpr int64_t kSpare = 4;

class AfterReasoning : public TokenConstraint {
 public:
  AfterReasoning(std::unique_ptr<TokenConstraint> inner, const ConstraintVocabulary& vocabulary)
      : inner_(std::move(inner)),
        vocabulary_(vocabulary),
        close_(vocabulary.tokenizer().find_special(kThinkClose)) {}

  void mask(std::span<float> logits) override {
    if (open_) return inner_->mask(logits);
    constexpr float kExcluded = -std::numeric_limits<float>::infinity();
    const bool must_close = close_ && tokens_left_ >= 0 && tokens_left_ <= inner_->min_tokens_left() + kSpare;
    if (must_close) {
      for (size_t id = 0; id < logits.size(); ++id)
        if (static_cast<TokenId>(id) != *close_) logits[id] = kExcluded;
      return;
    }
    for (const TokenId id : vocabulary_.index()->stop_ids())
      if (static_cast<size_t>(id) < logits.size()) logits[id] = kExcluded;
  }

  Result<void> accept(int32_t token) override {
    if (open_) return inner_->accept(token);
    tail_ += vocabulary_.tokenizer().token_bytes(token, /*specials=*/true);
    const size_t at = tail_.find(kThinkClose);
    if (at == std::string::npos) {
      if (tail_.size() > kThinkClose.size()) tail_.erase(0, tail_.size() - kThinkClose.size());
      return {};
    }
    open_ = true;
    // White space in the same token belongs to no one.
    return {};
  }

  bool complete() const override { return open_ && inner_->complete(); }
  void set_tokens_left(int64_t n_tokens) override {
    tokens_left_ = n_tokens;
    inner_->set_tokens_left(n_tokens);
  }
  int64_t min_tokens_left() const override { return inner_->min_tokens_left() + (open_ ? 0 : 1); }

 private:
  const std::unique_ptr<TokenConstraint> inner_;
  const ConstraintVocabulary vocabulary_;
  const std::optional<TokenId> close_;
  bool open_ = false;
  std::string tail_;
  int64_t tokens_left_ = -1;
};

}  // namespace

std::unique_ptr<TokenConstraint> after_reasoning(std::unique_ptr<TokenConstraint> inner,
                                                 bool starts_in_reasoning,
                                                 const ConstraintVocabulary& vocabulary) {
  if (!starts_in_reasoning) return inner;
  return std::make_unique<AfterReasoning>(std::move(inner), vocabulary);
}

}  // namespace forebay
