#include "tokenizer/jinja/token_stream.h"

#include <algorithm>

#include "tokenizer/jinja/failure.h"

namespace forebay::jinja {

const Token& TokenStream::take() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  check_current();
  return token;
}

void TokenStream::check_current() const {
  if (at(TokenType::kInvalid)) fail_at(line(), "{}", current().text);
}

bool TokenStream::skip(TokenType type) {
  if (!at(type)) return false;
  take();
  return true;
}

bool TokenStream::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  take();
  return true;
}

const Token& TokenStream::expect(TokenType type) {
  if (!at(type)) fail_expected(describe(type));
  return take();
}

void TokenStream::expect_name(std::string_view name) {
  if (!at_name(name)) fail_expected(fmt::format("'{}'", name));
  take();
}

void TokenStream::fail_expected(std::string_view wanted) const {
  fail_at(line(), "expected {}, got {}", wanted, describe(current()));
}

}  // namespace forebay::jinja
