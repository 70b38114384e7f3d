#include "tokenizer/jinja/arithmetic.h"

#include <cmath>
#include <cstdlib>
#include <optional>

#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/repr.h"

namespace forebay::jinja {

namespace {

[[noreturn]] void fail_overflow() {
  fail("integer beyond 128 bits");
}

Int add(Int a, Int b) {
  Int result;
  if (__builtin_add_overflow(a, b, &result)) fail_overflow();
  return result;
}

Int subtract(Int a, Int b) {
  Int result;
  if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
  return result;
}

Int multiply(Int a, Int b) {
  // Not __builtin_mul_overflow: for 128 bits clang calls a function that libgcc lacks.
  constexpr Int kHalf = Int{1} << 62;
  const bool small = a > -kHalf && a < kHalf && b > -kHalf && b < kHalf;
  if (small || a == 0 || b == 0) return a * b;
  using Unsigned = unsigned __int128;
  const auto magnitude = [](Int x) { return x < 0 ? -static_cast<Unsigned>(x) : static_cast<Unsigned>(x); };
  constexpr Unsigned kMax = ~Unsigned{0} >> 1;
  if (magnitude(a) > kMax / magnitude(b)) fail_overflow();
  return a * b;
}

constexpr Int kMinInt = static_cast<Int>(static_cast<unsigned __int128>(1) << 127);

Int floor_divide(Int a, Int b) {
  if (b == 0) fail("integer division or modulo by zero");
  if (a == kMinInt && b == -1) fail_overflow();
  const Int quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Int modulo(Int a, Int b) {
  if (b == -1) return 0;
  if (b == 0) fail("integer division or modulo by zero");
  const Int remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Value power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  // Powers of these stay small for any exponent.
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  Int result = 1;
  for (Int i = 0; i < exponent; ++i) result = multiply(result, base);
  return Value::integer(result);
}

struct FloatDivision {
  double quotient, remainder;
};

// The remainder has the divisor's sign, and quotient * divisor + remainder is as close to `a` as it gets.
FloatDivision divide_floor(double a, double b) {
  if (b == 0) fail("float division or modulo by zero");
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), remainder};
  double whole = std::floor(quotient);
  if (quotient - whole > 0.5) whole += 1;
  return {whole, remainder};
}

double float_power(double base, double exponent) {
  if (base == 0 && exponent < 0) fail("0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(exponent) && std::trunc(exponent) != exponent)
    fail("a negative number to a fractional power");
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) fail("float power out of range");
  return result;
}

Value apply_to_ints(Operator op, Int a, Int b) {
  switch (op) {
    case Operator::kAdd:
      return Value::integer(add(a, b));
    case Operator::kSubtract:
      return Value::integer(subtract(a, b));
    case Operator::kMultiply:
      return Value::integer(multiply(a, b));
    case Operator::kDivide:
      if (b == 0) fail("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case Operator::kFloorDivide:
      return Value::integer(floor_divide(a, b));
    case Operator::kModulo:
      return Value::integer(modulo(a, b));
    case Operator::kPower:
      return power(a, b);
  }
  return {};
}

double apply_to_floats(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSubtract:
      return a - b;
    case Operator::kMultiply:
      return a * b;
    case Operator::kDivide:
      if (b == 0) fail("float division by zero");
      return a / b;
    case Operator::kFloorDivide:
      return divide_floor(a, b).quotient;
    case Operator::kModulo:
      return divide_floor(a, b).remainder;
    case Operator::kPower:
      return float_power(a, b);
  }
  return 0;
}

// When one side is marked safe, the other is escaped to join it.
Value concatenated(Runtime& runtime, const Value& a, const Value& b) {
  const bool markup = a.as<String>().markup || b.as<String>().markup;
  const Value left = markup ? escaped(runtime, a) : a;
  const Value right = markup ? escaped(runtime, b) : b;
  runtime.check_text(left.text().size() + right.text().size());
  std::string text;
  text.reserve(left.text().size() + right.text().size());
  text += left.text();
  text += right.text();
  return runtime.string(std::move(text), markup);
}

std::vector<Value> joined(Runtime& runtime, const std::vector<Value>& a, const std::vector<Value>& b) {
  runtime.spend((a.size() + b.size()) / 4);
  std::vector<Value> items;
  items.reserve(a.size() + b.size());
  items.insert(items.end(), a.begin(), a.end());
  items.insert(items.end(), b.begin(), b.end());
  return items;
}

std::vector<Value> repeated(Runtime& runtime, const std::vector<Value>& items, Int n_times) {
  std::vector<Value> result;
  if (n_times <= 0 || items.empty()) return result;
  // The limits on text are as good for this, and come before any memory is taken.
  if (n_times > INT32_MAX) fail("a sequence of {} x {} items is too long", items.size(), n_times);
  runtime.check_text(items.size() * sizeof(Value), static_cast<uint64_t>(n_times));
  runtime.spend(items.size() * static_cast<uint64_t>(n_times) / 4);
  result.reserve(items.size() * static_cast<size_t>(n_times));
  for (Int i = 0; i < n_times; ++i) result.insert(result.end(), items.begin(), items.end());
  return result;
}

std::optional<Value> times(Runtime& runtime, const Value& value, const Value& count) {
  if (!count.is_integral()) return std::nullopt;
  const Int n_times = count.to_int();
  switch (value.kind()) {
    case Kind::kString: {
      const bool markup = value.as<String>().markup;
      if (n_times <= 0 || value.text().empty()) return runtime.string({}, markup);
      if (n_times > INT64_MAX) fail("a text of {} x {} bytes is too long", value.text().size(), n_times);
      runtime.check_text(value.text().size(), static_cast<uint64_t>(n_times));
      std::string text;
      text.reserve(value.text().size() * static_cast<size_t>(n_times));
      for (Int i = 0; i < n_times; ++i) text += value.text();
      return runtime.string(std::move(text), markup);
    }
    case Kind::kList:
      return runtime.list(repeated(runtime, value.as<List>().items, n_times));
    case Kind::kTuple:
      return runtime.tuple(repeated(runtime, value.as<Tuple>().items, n_times));
    default:
      return std::nullopt;
  }
}

std::optional<Value> apply_to_sequences(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  if (op == Operator::kAdd && a.kind() == b.kind()) {
    switch (a.kind()) {
      case Kind::kString:
        return concatenated(runtime, a, b);
      case Kind::kList:
        return runtime.list(joined(runtime, a.as<List>().items, b.as<List>().items));
      case Kind::kTuple:
        return runtime.tuple(joined(runtime, a.as<Tuple>().items, b.as<Tuple>().items));
      default:
        return std::nullopt;
    }
  }
  if (op == Operator::kMultiply) {
    if (std::optional<Value> result = times(runtime, a, b)) return result;
    return times(runtime, b, a);
  }
  if (op == Operator::kModulo && a.is_string()) return percent_format(runtime, a, b);
  return std::nullopt;
}

}  // namespace

std::string_view symbol_of(Operator op) {
  switch (op) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    case Operator::kPower:
      return "**";
  }
  return "?";
}

Value apply(Runtime& runtime, Operator op, const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return apply_to_ints(op, a.to_int(), b.to_int());
  if (a.is_number() && b.is_number()) return Value::real(apply_to_floats(op, a.to_double(), b.to_double()));
  if (const std::optional<Value> result = apply_to_sequences(runtime, op, a, b)) return *result;
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) fail("{}", value->as<Undefined>().message);
  fail("cannot apply {} to '{}' and '{}'", symbol_of(op), type_name(a), type_name(b));
}

Value negated(const Value& value) {
  if (value.is(Kind::kFloat)) return Value::real(-value.to_double());
  if (value.is_integral()) return Value::integer(subtract(0, value.to_int()));
  if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
  fail("cannot negate '{}'", type_name(value));
}

Value same_number(const Value& value) {
  if (value.is(Kind::kFloat)) return value;
  if (value.is_integral()) return Value::integer(value.to_int());
  if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
  fail("cannot apply + to '{}'", type_name(value));
}

Int int_of(double value) {
  if (!(std::abs(value) < 0x1p126)) fail("cannot convert float {} to integer", float_repr(value));
  return static_cast<Int>(value);
}

double rounded(double value, Int n_digits) {
  if (!std::isfinite(value) || n_digits > 323) return value;
  if (n_digits >= 0) {
    return std::strtod(float_digits(value, 'f', static_cast<int>(n_digits)).c_str(), nullptr);
  }
  if (n_digits < -308) return std::copysign(0.0, value);
  const double scale = std::pow(10.0, static_cast<double>(-n_digits));
  return std::nearbyint(value / scale) * scale;
}

}  // namespace forebay::jinja
