#include <algorithm>

#include "tokenizer/jinja/arithmetic.h"
#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/lookup_path.h"
#include "tokenizer/jinja/repr.h"
#include "tokenizer/jinja/sorting.h"
#include "tokenizer/jinja/subscript.h"
#include "tokenizer/jinja/text.h"

namespace forebay::jinja {

namespace {

/// Python's sorted() takes integers for its flag only.
bool is_reversed(const Value& flag) {
  if (!flag.is_missing() && !flag.is_integral())
    fail("reverse must be an integer, not '{}'", type_name(flag));
  return bool_or(flag, false);
}

Value attr(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("attr", arguments, {"name"}, 1);
  if (!bound[0].is_string()) fail("attr: name must be a string, not '{}'", type_name(bound[0]));
  return pure_attribute_of(runtime, value, bound[0].text());
}

Value default_value(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("default", arguments, {"default_value", "boolean"}, 0);
  const bool replace = value.is_undefined() || (bool_or(bound[1], false) && !truthy(value));
  if (!replace) return value;
  return bound[0].is_missing() ? runtime.string({}) : bound[0];
}

Value dictsort(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0);
  if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
  if (!value.is(Kind::kDict)) fail("dictsort of '{}', expected dict", type_name(value));
  const std::string by = text_or(runtime, bound[1], "key", "by");
  if (by != "key" && by != "value") fail("dictsort: by must be \"key\" or \"value\", not {}", quoted(by));
  std::vector<Value> items;
  std::vector<Value> keys;
  for (const Dict::Entry& entry : value.as<Dict>().entries()) {
    items.push_back(runtime.tuple({entry.key, entry.value}));
    keys.push_back(sort_key(runtime, by == "key" ? entry.key : entry.value, bool_or(bound[0], false)));
  }
  sort_by(runtime, items, keys, is_reversed(bound[2]));
  return runtime.list(std::move(items));
}

Value first(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("first", arguments, {}, 0);
  Value item;
  if (iterate(runtime, value)->next(runtime, item)) return item;
  return runtime.undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("last", arguments, {}, 0);
  // Without walking what can be indexed.
  if ((value.is(Kind::kList) || value.is_string()) && truthy(value))
    return item_of(runtime, value, Value::integer(-1));
  const Ref<Iterator> iterator = iterate_backwards(runtime, value);
  if (!iterator) fail("'{}' object is not reversible", type_name(value));
  Value item;
  if (iterator->next(runtime, item)) return item;
  return runtime.undefined("No last item, sequence was empty.");
}

Value groupby(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const LookupPath path(runtime, bound[0]);
  const bool case_sensitive = bool_or(bound[2], false);
  std::vector<Value> items = collect(runtime, value);
  std::vector<Value> keys;
  const auto key_of = [&](const Value& item) {
    return sort_key(runtime, path.of(runtime, item, bound[1]), case_sensitive);
  };
  for (const Value& item : items) keys.push_back(key_of(item));
  sort_by(runtime, items, keys, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < items.size();) {
    const Value key = key_of(items[begin]);
    size_t end = begin + 1;
    while (end < items.size() && equals(runtime, key_of(items[end]), key)) ++end;
    const auto at = [&](size_t i) { return items.begin() + static_cast<std::ptrdiff_t>(i); };
    Value list = runtime.list({at(begin), at(end)});
    std::vector<Value> pair = {path.of(runtime, items[begin], bound[1]), std::move(list)};
    groups.push_back(runtime.heap().make<Tuple>(std::move(pair), true));
    begin = end;
  }
  return runtime.list(std::move(groups));
}

Value join(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("join", arguments, {"d", "attribute"}, 0);
  const std::string separator = bound[0].is_missing() ? std::string() : str_of(runtime, bound[0]);
  const LookupPath path(runtime, bound[1]);
  std::string out;
  bool is_first = true;
  const Ref<Iterator> iterator = iterate(runtime, value);
  for (Value item; iterator->next(runtime, item); is_first = false) {
    runtime.spend();
    const std::string text = str_of(runtime, path.of(runtime, item));
    runtime.check_text(out.size() + separator.size() + text.size());
    if (!is_first) out += separator;
    out += text;
  }
  return runtime.string(std::move(out));
}

Value length(Runtime&, const Value& value, Arguments& arguments) {
  bind("length", arguments, {}, 0);
  const std::optional<Int> n = length_of(value);
  if (!n) fail("object of type '{}' has no len()", type_name(value));
  return Value::integer(*n);
}

Value list(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("list", arguments, {}, 0);
  return runtime.list(collect(runtime, value));
}

Value extreme(Runtime& runtime, const Value& value, Arguments& arguments, std::string_view name,
              bool greatest) {
  const std::vector<Value> bound = bind(name, arguments, {"case_sensitive", "attribute"}, 0);
  const bool case_sensitive = bool_or(bound[0], false);
  const LookupPath path(runtime, bound[1]);
  Value best, best_key;
  const Ref<Iterator> iterator = iterate(runtime, value);
  for (Value item; iterator->next(runtime, item);) {
    runtime.spend();
    Value key = sort_key(runtime, path.of(runtime, item), case_sensitive);
    if (!best.is_missing() && !(greatest ? less(runtime, best_key, key) : less(runtime, key, best_key)))
      continue;
    best = item;
    best_key = std::move(key);
  }
  return best.is_missing() ? runtime.undefined("No aggregated item, sequence was empty.") : best;
}

Value max(Runtime& runtime, const Value& value, Arguments& arguments) {
  return extreme(runtime, value, arguments, "max", true);
}

Value min(Runtime& runtime, const Value& value, Arguments& arguments) {
  return extreme(runtime, value, arguments, "min", false);
}

Value reverse(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("reverse", arguments, {}, 0);
  if (value.is_string()) return slice_of(runtime, value, {}, {}, Value::integer(-1));
  if (const Ref<Iterator> iterator = iterate_backwards(runtime, value)) return iterator;
  if (!is_iterable(value)) fail("reverse: argument must be iterable");
  std::vector<Value> items = collect(runtime, value);
  std::reverse(items.begin(), items.end());
  return runtime.list(std::move(items));
}

Value sort(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0);
  const bool case_sensitive = bool_or(bound[1], false);
  std::vector<LookupPath> paths;
  if (bound[2].is_string()) {
    for (const std::string_view part : split_text(bound[2].text(), ",", -1, Side::kLeft))
      paths.emplace_back(runtime, runtime.string(std::string(part)));
  } else {
    paths.emplace_back(runtime, bound[2]);
  }
  std::vector<Value> items = collect(runtime, value);
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (const LookupPath& path : paths)
      key.push_back(sort_key(runtime, path.of(runtime, item), case_sensitive));
    keys.push_back(runtime.list(std::move(key)));
  }
  sort_by(runtime, items, keys, is_reversed(bound[0]));
  return runtime.list(std::move(items));
}

Value sum(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("sum", arguments, {"attribute", "start"}, 0);
  const LookupPath path(runtime, bound[0]);
  Value total = bound[1].is_missing() ? Value::integer(0) : bound[1];
  if (total.is_string()) fail("sum() can't sum strings");
  const Ref<Iterator> iterator = iterate(runtime, value);
  for (Value item; iterator->next(runtime, item);) {
    runtime.spend();
    total = apply(runtime, Operator::kAdd, total, path.of(runtime, item));
  }
  return total;
}

constexpr Filter kFilters[] = {
    {"attr", attr},         {"count", length},    {"d", default_value}, {"default", default_value},
    {"dictsort", dictsort}, {"first", first},     {"groupby", groupby}, {"join", join},
    {"last", last},         {"length", length},   {"list", list},       {"max", max},
    {"min", min},           {"reverse", reverse}, {"sort", sort},       {"sum", sum},
};

}  // namespace

std::span<const Filter> sequence_filters() {
  return kFilters;
}

}  // namespace forebay::jinja
