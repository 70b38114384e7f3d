#include "tokenizer/jinja/tests.h"

#include "tokenizer/jinja/arithmetic.h"
#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/methods.h"
#include "tokenizer/jinja/repr.h"

namespace forebay::jinja {

namespace {

/// The one argument of tests that have one.
Value other(const Arguments& arguments, std::string_view test) {
  return bind(test, arguments, {"other"}, 1)[0];
}

// ---- of one value ----

template <bool (*property)(const Value&)>
bool is_a(Runtime&, const Value& value, Arguments& arguments) {
  bind("test", arguments, {}, 0);
  return property(value);
}

bool is_boolean(const Value& value) {
  return value.is(Kind::kBool);
}
bool is_true(const Value& value) {
  return is_boolean(value) && value.to_int() != 0;
}
bool is_false(const Value& value) {
  return is_boolean(value) && value.to_int() == 0;
}
bool is_none(const Value& value) {
  return value.is_none();
}
bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(const Value& value) {
  return value.is_undefined();
}
bool is_integer(const Value& value) {
  return value.is(Kind::kInt);
}
bool is_float(const Value& value) {
  return value.is(Kind::kFloat);
}
bool is_number(const Value& value) {
  return value.is_number();
}
bool is_string(const Value& value) {
  return value.is_string();
}
bool is_mapping(const Value& value) {
  return value.is(Kind::kDict);
}
bool is_escaped(const Value& value) {
  return value.is_string() && value.as<String>().markup;
}

bool is_callable(const Value& value) {
  return value.is_undefined() || (value.is(Kind::kOpaque) && value.as<Opaque>().is_callable());
}

bool is_sequence(const Value& value) {
  return length_of(value).has_value() && !value.is(Kind::kView);
}

bool has_case(Runtime& runtime, const Value& value, std::string_view method) {
  const Value text = runtime.string(str_of(runtime, value));
  Arguments none;
  return truthy(find_method(text, method)->call(runtime, text, none));
}

bool lower(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("lower", arguments, {}, 0);
  return has_case(runtime, value, "islower");
}

bool upper(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("upper", arguments, {}, 0);
  return has_case(runtime, value, "isupper");
}

void check_hashable(Runtime& runtime, const Value& value) {
  if (!is_hashable(runtime, value)) fail("unhashable type: '{}'", type_name(value));
}

bool known_filter(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("filter", arguments, {}, 0);
  check_hashable(runtime, value);
  return value.is_string() && find_filter(value.text()) != nullptr;
}

bool known_test(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("test", arguments, {}, 0);
  check_hashable(runtime, value);
  return value.is_string() && find_test(value.text()) != nullptr;
}

bool leaves(Runtime& runtime, const Value& value, const Value& divisor, Int remainder) {
  return equals(runtime, apply(runtime, Operator::kModulo, value, divisor), Value::integer(remainder));
}

bool even(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("even", arguments, {}, 0);
  return leaves(runtime, value, Value::integer(2), 0);
}

bool odd(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("odd", arguments, {}, 0);
  return leaves(runtime, value, Value::integer(2), 1);
}

// ---- of two ----

bool divisibleby(Runtime& runtime, const Value& value, Arguments& arguments) {
  return leaves(runtime, value, bind("divisibleby", arguments, {"num"}, 1)[0], 0);
}

bool sameas(Runtime& runtime, const Value& value, Arguments& arguments) {
  const Value wanted = other(arguments, "sameas");
  if (value.kind() != wanted.kind()) return false;
  // Equal strings are taken to be one: whether Python shares them is chance.
  if (!value.is_object() || value.is_string()) return equals(runtime, value, wanted);
  return value.identity() == wanted.identity();
}

bool in(Runtime& runtime, const Value& value, Arguments& arguments) {
  return contains(runtime, bind("in", arguments, {"seq"}, 1)[0], value);
}

bool eq(Runtime& runtime, const Value& value, Arguments& arguments) {
  return equals(runtime, value, other(arguments, "eq"));
}

bool ne(Runtime& runtime, const Value& value, Arguments& arguments) {
  return !equals(runtime, value, other(arguments, "ne"));
}

bool lt(Runtime& runtime, const Value& value, Arguments& arguments) {
  return less(runtime, value, other(arguments, "lt"));
}

bool le(Runtime& runtime, const Value& value, Arguments& arguments) {
  return less_or_equal(runtime, value, other(arguments, "le"));
}

bool gt(Runtime& runtime, const Value& value, Arguments& arguments) {
  return less(runtime, other(arguments, "gt"), value);
}

bool ge(Runtime& runtime, const Value& value, Arguments& arguments) {
  return less_or_equal(runtime, other(arguments, "ge"), value);
}

constexpr Test kTests[] = {
    {"!=", ne},
    {"<", lt},
    {"<=", le},
    {"==", eq},
    {">", gt},
    {">=", ge},
    {"boolean", is_a<is_boolean>},
    {"callable", is_a<is_callable>},
    {"defined", is_a<is_defined>},
    {"divisibleby", divisibleby},
    {"eq", eq},
    {"equalto", eq},
    {"escaped", is_a<is_escaped>},
    {"even", even},
    {"false", is_a<is_false>},
    {"filter", known_filter},
    {"float", is_a<is_float>},
    {"ge", ge},
    {"greaterthan", gt},
    {"gt", gt},
    {"in", in},
    {"integer", is_a<is_integer>},
    {"iterable", is_a<is_iterable>},
    {"le", le},
    {"lessthan", lt},
    {"lower", lower},
    {"lt", lt},
    {"mapping", is_a<is_mapping>},
    {"ne", ne},
    {"none", is_a<is_none>},
    {"number", is_a<is_number>},
    {"odd", odd},
    {"sameas", sameas},
    {"sequence", is_a<is_sequence>},
    {"string", is_a<is_string>},
    {"test", known_test},
    {"true", is_a<is_true>},
    {"undefined", is_a<is_undefined>},
    {"upper", upper},
};

}  // namespace

const Test* find_test(std::string_view name) {
  for (const Test& test : kTests)
    if (test.name == name) return &test;
  return nullptr;
}

}  // namespace forebay::jinja
