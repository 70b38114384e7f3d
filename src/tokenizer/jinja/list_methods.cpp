#include <algorithm>

#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/methods.h"
#include "tokenizer/jinja/sorting.h"

namespace forebay::jinja {

namespace {

const std::vector<Value>& items_of(const Value& self) {
  return self.is(Kind::kList) ? self.as<List>().items : self.as<Tuple>().items;
}

bool same(Runtime& runtime, const Value& a, const Value& b) {
  return (a.is_object() && b.is_object() && a.identity() == b.identity()) || equals(runtime, a, b);
}

/// Position of the first equal item in [start, stop), or the number of items.
size_t position_of(Runtime& runtime, const Value& self, const Value& wanted, int64_t start, int64_t stop) {
  for (int64_t i = std::max<int64_t>(start, 0); i < stop; ++i) {
    if (i >= static_cast<int64_t>(items_of(self).size())) break;
    if (same(runtime, items_of(self)[static_cast<size_t>(i)], wanted)) return static_cast<size_t>(i);
  }
  return items_of(self).size();
}

void push(Runtime& runtime, List& list, Value value) {
  runtime.heap().charge(list, sizeof(Value));
  list.items.push_back(std::move(value));
}

Value append(Runtime& runtime, const Value& self, Arguments& arguments) {
  push(runtime, self.as<List>(), bind("append", arguments, {""}, 1)[0]);
  return Value::none();
}

Value clear(Runtime&, const Value& self, Arguments& arguments) {
  bind("clear", arguments, {}, 0);
  self.as<List>().forget();
  return Value::none();
}

Value copy(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("copy", arguments, {}, 0);
  return runtime.list(collect(runtime, self));
}

Value count(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("count", arguments, {""}, 1);
  Int n = 0;
  for (const Value& item : items_of(self)) n += same(runtime, item, bound[0]) ? 1 : 0;
  return Value::integer(n);
}

Value extend(Runtime& runtime, const Value& self, Arguments& arguments) {
  for (Value& item : collect(runtime, bind("extend", arguments, {""}, 1)[0]))
    push(runtime, self.as<List>(), std::move(item));
  return Value::none();
}

Value index(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("index", arguments, {"", "", ""}, 1);
  const auto n = static_cast<int64_t>(items_of(self).size());
  int64_t start = size_or(bound[1], 0, "start"), stop = size_or(bound[2], n, "stop");
  if (start < 0) start += n;
  if (stop < 0) stop += n;
  const size_t found = position_of(runtime, self, bound[0], start, stop);
  if (found == items_of(self).size()) fail("index: the value is not in the {}", type_name(self));
  return Value::integer(static_cast<Int>(found));
}

Value insert(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("insert", arguments, {"", ""}, 2);
  List& list = self.as<List>();
  const auto n = static_cast<int64_t>(list.items.size());
  int64_t at = size_or(bound[0], 0, "index");
  if (at < 0) at = std::max<int64_t>(at + n, 0);
  runtime.spend(list.items.size() / 16);
  push(runtime, list, bound[1]);
  std::rotate(list.items.begin() + std::min(at, n), list.items.end() - 1, list.items.end());
  return Value::none();
}

Value pop(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("pop", arguments, {""}, 0);
  List& list = self.as<List>();
  const auto n = static_cast<int64_t>(list.items.size());
  int64_t at = size_or(bound[0], -1, "index");
  if (at < 0) at += n;
  if (at < 0 || at >= n) fail("pop: index out of range in a list of {}", n);
  runtime.spend(static_cast<uint64_t>(n - at) / 16);
  Value item = list.items[static_cast<size_t>(at)];
  list.items.erase(list.items.begin() + at);
  return item;
}

Value remove(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("remove", arguments, {""}, 1);
  std::vector<Value>& items = self.as<List>().items;
  const size_t found = position_of(runtime, self, bound[0], 0, static_cast<int64_t>(items.size()));
  if (found == items.size()) fail("remove: the value is not in the list");
  const Value removed = items[found];
  items.erase(items.begin() + static_cast<int64_t>(found));
  return Value::none();
}

Value reverse(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("reverse", arguments, {}, 0);
  std::vector<Value>& items = self.as<List>().items;
  runtime.spend(items.size() / 4);
  std::reverse(items.begin(), items.end());
  return Value::none();
}

Value sort(Runtime& runtime, const Value& self, Arguments& arguments) {
  Value key = arguments.take("key");
  const bool backwards = bool_or(arguments.take("reverse"), false);
  bind("sort", arguments, {}, 0);
  std::vector<Value> items = collect(runtime, self);
  std::vector<Value> keys;
  for (const Value& item : items) {
    if (key.is_absent()) {
      keys.push_back(item);
      continue;
    }
    if (!key.is(Kind::kOpaque)) fail("'{}' object is not callable", type_name(key));
    Arguments call{{item}, {}};
    keys.push_back(key.as<Opaque>().call(runtime, call));
  }
  sort_by(runtime, items, keys, backwards);
  self.as<List>().items = std::move(items);
  return Value::none();
}

// By name.
constexpr Method kListMethods[] = {
    {"append", append}, {"clear", clear},     {"copy", copy},     {"count", count},
    {"extend", extend}, {"index", index},     {"insert", insert}, {"pop", pop},
    {"remove", remove}, {"reverse", reverse}, {"sort", sort},
};

constexpr Method kTupleMethods[] = {{"count", count}, {"index", index}};

}  // namespace

std::span<const Method> list_methods() {
  return kListMethods;
}

std::span<const Method> tuple_methods() {
  return kTupleMethods;
}

}  // namespace forebay::jinja
