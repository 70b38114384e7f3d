#include "tokenizer/jinja/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/search.h"

namespace forebay::jinja {

namespace {

enum class Order { kLess, kEqual, kGreater, kUnordered };

template <typename T>
Order order_of(const T& a, const T& b) {
  return a < b ? Order::kLess : b < a ? Order::kGreater : Order::kEqual;
}

Order reversed(Order order) {
  return order == Order::kLess ? Order::kGreater : order == Order::kGreater ? Order::kLess : order;
}

// Exactly: a double and an integer close to it may differ by less than the double's precision.
Order order_of_mixed(double a, Int b) {
  if (std::isnan(a)) return Order::kUnordered;
  constexpr double kBeyondInt = 0x1p127;
  if (a >= kBeyondInt) return Order::kGreater;
  if (a < -kBeyondInt) return Order::kLess;
  const double whole = std::trunc(a);
  const Order order = order_of(static_cast<Int>(whole), b);
  return order != Order::kEqual ? order : order_of(a - whole, 0.0);
}

Order order_of_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return order_of(a.to_int(), b.to_int());
  if (a.is_integral()) return reversed(order_of_mixed(b.to_double(), a.to_int()));
  if (b.is_integral()) return order_of_mixed(a.to_double(), b.to_int());
  if (std::isnan(a.to_double()) || std::isnan(b.to_double())) return Order::kUnordered;
  return order_of(a.to_double(), b.to_double());
}

bool same_or_equal(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_object() && b.is_object() && a.identity() == b.identity()) return true;
  return equals(runtime, a, b);
}

bool items_equal(Runtime& runtime, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (!same_or_equal(runtime, a[i], b[i])) return false;
  return true;
}

bool dicts_equal(Runtime& runtime, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  for (const Dict::Entry& entry : a.entries()) {
    const Value* other = b.find(runtime, entry.key);
    if (other == nullptr || !same_or_equal(runtime, entry.value, *other)) return false;
  }
  return true;
}

// Views of keys and of items compare as sets.
bool views_equal(Runtime& runtime, const View& a, const View& b) {
  if (a.part != b.part || a.part == View::Part::kValues) return &a == &b;
  if (a.part == View::Part::kItems) return dicts_equal(runtime, *a.dict, *b.dict);
  if (a.dict->size() != b.dict->size()) return false;
  return std::all_of(a.dict->entries().begin(), a.dict->entries().end(),
                     [&](const Dict::Entry& entry) { return b.dict->find(runtime, entry.key) != nullptr; });
}

bool ranges_equal(const Range& a, const Range& b) {
  const Int n = a.length();
  if (n != b.length()) return false;
  return n == 0 || (a.start == b.start && (n == 1 || a.step == b.step));
}

/// Of sequences: by the first items that differ, else by length.
bool sequence_less(Runtime& runtime, const std::vector<Value>& a, const std::vector<Value>& b,
                   bool (*compare)(Runtime&, const Value&, const Value&), bool if_equal) {
  const Nesting nesting(runtime);
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (!same_or_equal(runtime, a[i], b[i])) return compare(runtime, a[i], b[i]);
  return a.size() == b.size() ? if_equal : a.size() < b.size();
}

bool ordered(Runtime& runtime, const Value& a, const Value& b, bool or_equal) {
  runtime.spend();
  if (a.is_number() && b.is_number()) {
    const Order order = order_of_numbers(a, b);
    return order == Order::kLess || (or_equal && order == Order::kEqual);
  }
  if (a.is_string() && b.is_string()) {
    // Byte order is code point order in UTF-8.
    runtime.spend_bytes(std::min(a.text().size(), b.text().size()));
    const int order = a.text().compare(b.text());
    return order < 0 || (or_equal && order == 0);
  }
  auto* compare = or_equal ? less_or_equal : less;
  if (a.is(Kind::kList) && b.is(Kind::kList))
    return sequence_less(runtime, a.as<List>().items, b.as<List>().items, compare, or_equal);
  if (a.is(Kind::kTuple) && b.is(Kind::kTuple))
    return sequence_less(runtime, a.as<Tuple>().items, b.as<Tuple>().items, compare, or_equal);
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) fail("{}", value->as<Undefined>().message);
  fail("'{}' and '{}' have no order", type_name(a), type_name(b));
}

uint64_t mixed(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9e3779b97f4a7c15u;
  return x ^ x >> 29;
}

}  // namespace

bool equals(Runtime& runtime, const Value& a, const Value& b) {
  runtime.spend();
  if (a.is_number() && b.is_number()) return order_of_numbers(a, b) == Order::kEqual;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kMissing:
    case Kind::kNone:
    case Kind::kUndefined:
      return true;
    case Kind::kString:
      if (a.text().size() != b.text().size()) return false;
      runtime.spend_bytes(a.text().size());
      return a.text() == b.text();
    case Kind::kList: {
      const Nesting nesting(runtime);
      return items_equal(runtime, a.as<List>().items, b.as<List>().items);
    }
    case Kind::kTuple: {
      const Nesting nesting(runtime);
      return items_equal(runtime, a.as<Tuple>().items, b.as<Tuple>().items);
    }
    case Kind::kDict: {
      const Nesting nesting(runtime);
      return dicts_equal(runtime, a.as<Dict>(), b.as<Dict>());
    }
    case Kind::kView: {
      const Nesting nesting(runtime);
      return views_equal(runtime, a.as<View>(), b.as<View>());
    }
    case Kind::kRange:
      return ranges_equal(a.as<Range>(), b.as<Range>());
    default:
      return a.identity() == b.identity();
  }
}

bool less(Runtime& runtime, const Value& a, const Value& b) {
  return ordered(runtime, a, b, false);
}

bool less_or_equal(Runtime& runtime, const Value& a, const Value& b) {
  return ordered(runtime, a, b, true);
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.is_string()) fail("'in <string>' requires string as left operand, not {}", type_name(item));
      runtime.spend_bytes(container.text().size());
      return find_text(container.text(), item.text()) != std::string_view::npos;
    case Kind::kDict:
      return container.as<Dict>().find(runtime, item) != nullptr;
    case Kind::kView:
      if (container.as<View>().part == View::Part::kKeys)
        return container.as<View>().dict->find(runtime, item) != nullptr;
      break;
    case Kind::kRange:
      if (item.is_integral()) {
        const Range& range = container.as<Range>();
        const Int distance = item.to_int() - range.start;
        return distance % range.step == 0 && distance / range.step >= 0 &&
               distance / range.step < range.length();
      }
      break;
    default:
      if (!is_iterable(container)) fail("argument of type '{}' is not iterable", type_name(container));
  }
  const Ref<Iterator> iterator = iterate(runtime, container);
  for (Value other; iterator->next(runtime, other);) {
    runtime.spend();
    if (same_or_equal(runtime, other, item)) return true;
  }
  return false;
}

uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

uint64_t hash_of(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::kBool:
    case Kind::kInt:
      return mixed(static_cast<uint64_t>(value.to_int()));
    case Kind::kFloat: {
      const double number = value.to_double();
      // As the integer it equals.
      if (std::abs(number) < 0x1p126 && std::trunc(number) == number)
        return mixed(static_cast<uint64_t>(static_cast<Int>(number)));
      uint64_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      return mixed(bits);
    }
    case Kind::kString:
      runtime.spend_bytes(value.text().size());
      return hash_of(value.text());
    case Kind::kTuple: {
      const Nesting nesting(runtime);
      uint64_t hash = 1;
      for (const Value& item : value.as<Tuple>().items) {
        runtime.spend();
        hash = mixed(hash * 31 + hash_of(runtime, item));
      }
      return hash;
    }
    case Kind::kRange:
      return static_cast<uint64_t>(value.as<Range>().length());
    case Kind::kMissing:
    case Kind::kNone:
    case Kind::kUndefined:
      return static_cast<uint64_t>(value.kind());
    case Kind::kList:
    case Kind::kDict:
    case Kind::kView:
      fail("unhashable type: '{}'", type_name(value));
    case Kind::kIterator:
    case Kind::kOpaque:
      break;
  }
  return mixed(reinterpret_cast<uintptr_t>(value.identity()));
}

bool is_hashable(Runtime& runtime, const Value& value) {
  runtime.spend();
  switch (value.kind()) {
    case Kind::kList:
    case Kind::kDict:
    case Kind::kView:
      return false;
    case Kind::kTuple: {
      const Nesting nesting(runtime);
      const std::vector<Value>& items = value.as<Tuple>().items;
      return std::all_of(items.begin(), items.end(),
                         [&](const Value& item) { return is_hashable(runtime, item); });
    }
    default:
      return true;
  }
}

}  // namespace forebay::jinja
