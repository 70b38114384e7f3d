/// Tokens in order, with the checks every parsing function needs.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/token.h"

namespace forebay::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) { check_current(); }

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  int line() const { return current().line; }

  bool at(TokenType type) const { return current().type == type; }
  bool at_name(std::string_view name) const { return current().is_name(name); }

  /// The current token, stepped over. Fails when what follows cannot be read.
  const Token& take();
  bool skip(TokenType type);
  bool skip_name(std::string_view name);
  /// Fails when the current token is another.
  const Token& expect(TokenType type);
  void expect_name(std::string_view name);

  [[noreturn]] void fail_expected(std::string_view wanted) const;

 private:
  void check_current() const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace forebay::jinja
