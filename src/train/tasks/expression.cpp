#include "train/tasks/expression.h"

#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

namespace forebay::train {
namespace {

constexpr size_t kMaxBytes = 64;
constexpr int64_t kMaxValue = int64_t{1} << 31;  // products of two stay within 64 bits

Result<Fraction> combine(char op, Fraction a, Fraction b) {
  Fraction c;
  switch (op) {
    case '+':
      c = {a.num * b.den + b.num * a.den, a.den * b.den};
      break;
    case '-':
      c = {a.num * b.den - b.num * a.den, a.den * b.den};
      break;
    case '*':
      c = {a.num * b.num, a.den * b.den};
      break;
    default:
      if (b.num == 0) return Error{Code::kCorrupt, "expression: division by zero"};
      c = {a.num * b.den, a.den * b.num};
  }
  if (c.den < 0) c = {-c.num, -c.den};
  const int64_t common = std::gcd(std::abs(c.num), c.den);
  c = {c.num / common, c.den / common};
  if (std::abs(c.num) >= kMaxValue || c.den >= kMaxValue)
    return Error{Code::kCorrupt, "expression: a value beyond 2^31"};
  return c;
}

/// Recursive descent; depth is bounded by the length of the text.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Evaluated> run() {
    Evaluated result;
    result.value = TRY(sum());
    if (at_ != text_.size()) return wrong("an operator");
    result.numbers = std::move(numbers_);
    return result;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  Error wrong(std::string_view wanted) const {
    return {Code::kCorrupt, fmt::format("expression: byte {} of {}: expected {}", at_, text_.size(), wanted)};
  }

  Result<Fraction> sum() {
    Fraction value = TRY(product());
    while (peek() == '+' || peek() == '-') {
      const char op = text_[at_++];
      const Fraction right = TRY(product());
      value = TRY(combine(op, value, right));
    }
    return value;
  }
  Result<Fraction> product() {
    Fraction value = TRY(atom());
    while (peek() == '*' || peek() == '/') {
      const char op = text_[at_++];
      const Fraction right = TRY(atom());
      value = TRY(combine(op, value, right));
    }
    return value;
  }
  Result<Fraction> atom() {
    if (peek() == '(') {
      ++at_;
      const Fraction value = TRY(sum());
      if (peek() != ')') return wrong("')'");
      ++at_;
      return value;
    }
    int64_t n = 0;
    size_t digits = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_, ++digits) {
      if (digits == 6) return wrong("at most 6 digits");
      n = n * 10 + (peek() - '0');
    }
    if (digits == 0) return wrong("a number or '('");
    numbers_.push_back(n);
    return Fraction{n, 1};
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<int64_t> numbers_;
};

}  // namespace

Result<Evaluated> evaluate(std::string_view text) {
  if (text.size() > kMaxBytes)
    return Error{Code::kCorrupt, fmt::format("expression: {} bytes, at most {}", text.size(), kMaxBytes)};
  return Parser(text).run();
}

}  // namespace forebay::train
