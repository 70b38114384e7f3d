#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace forebay {

std::string StreamDecoder::push(TokenId id) {
  pending_ += tokenizer_->token_bytes(id, specials_);
  // Only the last sequence can be incomplete; what is wrong before it stays wrong.
  size_t n_complete = 0;
  while (n_complete < pending_.size()) {
    utf8::Char c = utf8::first_char(std::string_view(pending_).substr(n_complete));
    if (c.status == utf8::Status::kTruncated) break;
    n_complete += c.n_bytes;
  }
  std::string text;
  utf8::append_replaced(text, std::string_view(pending_).substr(0, n_complete));
  pending_.erase(0, n_complete);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  utf8::append_replaced(text, pending_);
  pending_.clear();
  return text;
}

}  // namespace forebay
