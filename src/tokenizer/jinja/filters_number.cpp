#include <array>
#include <cmath>

#include "tokenizer/jinja/arithmetic.h"
#include "tokenizer/jinja/convert.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/format.h"

namespace forebay::jinja {

namespace {

[[noreturn]] void fail_undefined(const Value& value) {
  fail("{}", value.as<Undefined>().message);
}

Value absolute(Runtime&, const Value& value, Arguments& arguments) {
  bind("abs", arguments, {}, 0);
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_number()) fail("abs of '{}'", type_name(value));
  if (value.is(Kind::kFloat)) return Value::real(std::abs(value.to_double()));
  return value.to_int() < 0 ? negated(value) : Value::integer(value.to_int());
}

Value to_int(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("int", arguments, {"default", "base"}, 0);
  const Value otherwise = bound[0].is_missing() ? Value::integer(0) : bound[0];
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_integral()) return Value::integer(value.to_int());
  if (value.is(Kind::kFloat)) {
    if (std::isnan(value.to_double())) return otherwise;
    return Value::integer(int_of(value.to_double()));
  }
  if (!value.is_string()) return otherwise;
  runtime.spend_bytes(value.text().size());
  const Int base = int_or(bound[1], 10, "base");
  if (base != 0 && (base < 2 || base > 36)) {
    // As a float, then.
  } else if (const std::optional<Int> number = parse_int(value.text(), static_cast<int>(base))) {
    return Value::integer(*number);
  }
  const std::optional<double> number = parse_float(value.text());
  if (!number || !std::isfinite(*number)) return otherwise;
  return Value::integer(int_of(*number));
}

Value to_float(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("float", arguments, {"default"}, 0);
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_number()) return Value::real(value.to_double());
  if (value.is_string()) {
    runtime.spend_bytes(value.text().size());
    if (const std::optional<double> number = parse_float(value.text())) return Value::real(*number);
  }
  return bound[0].is_missing() ? Value::real(0) : bound[0];
}

Int rounded_int(Int value, Int n_digits) {
  if (n_digits >= 0) return value;
  if (n_digits < -37) return 0;
  Int unit = 1;
  for (Int i = 0; i < -n_digits; ++i) unit *= 10;
  const Int remainder = value % unit;
  const Int down = value - remainder;
  const Int distance = remainder < 0 ? -remainder : remainder;
  const bool away = distance * 2 > unit || (distance * 2 == unit && down / unit % 2 != 0);
  return away ? down + (value < 0 ? -unit : unit) : down;
}

Value round(Runtime&, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("round", arguments, {"precision", "method"}, 0);
  std::string_view method = "common";
  if (bound[1].is_string()) method = bound[1].text();
  if ((!bound[1].is_missing() && !bound[1].is_string()) ||
      (method != "common" && method != "ceil" && method != "floor"))
    fail("round: method must be common, ceil or floor");
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_number()) fail("round of '{}'", type_name(value));
  if (method == "common") {
    if (value.is_integral())
      return Value::integer(rounded_int(value.to_int(), int_or(bound[0], 0, "precision")));
    if (bound[0].is_none()) return Value::integer(int_of(std::nearbyint(value.to_double())));
    return Value::real(rounded(value.to_double(), int_or(bound[0], 0, "precision")));
  }
  const double scale = std::pow(10.0, static_cast<double>(int_or(bound[0], 0, "precision")));
  const double scaled = value.to_double() * scale;
  if (!std::isfinite(scaled)) fail("cannot convert float {} to integer", scaled);
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value filesizeformat(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("filesizeformat", arguments, {"binary"}, 0);
  Arguments none;
  if (value.is_string() && !parse_float(value.text())) fail("filesizeformat of a text that is no number");
  if (!value.is_string() && !value.is_number()) fail("filesizeformat of '{}'", type_name(value));
  const double n_bytes = to_float(runtime, value, none).to_double();
  const bool binary = bool_or(bound[0], false);
  const double base = binary ? 1024 : 1000;
  static constexpr std::array<std::string_view, 8> kDecimal = {"kB", "MB", "GB", "TB",
                                                               "PB", "EB", "ZB", "YB"};
  static constexpr std::array<std::string_view, 8> kBinary = {"KiB", "MiB", "GiB", "TiB",
                                                              "PiB", "EiB", "ZiB", "YiB"};
  if (n_bytes == 1) return runtime.string("1 Byte");
  if (n_bytes < base) return runtime.string(fmt::format("{} Bytes", int_of(n_bytes)));
  double unit = base;
  size_t i = 0;
  for (; i + 1 < kDecimal.size() && n_bytes >= unit * base; ++i) unit *= base;
  const double n_units = base * n_bytes / (unit * base);
  return runtime.string(float_digits(n_units, 'f', 1) + " " + std::string((binary ? kBinary : kDecimal)[i]));
}

constexpr Filter kFilters[] = {
    {"abs", absolute}, {"filesizeformat", filesizeformat}, {"float", to_float}, {"int", to_int},
    {"round", round},
};

}  // namespace

std::span<const Filter> number_filters() {
  return kFilters;
}

}  // namespace forebay::jinja
