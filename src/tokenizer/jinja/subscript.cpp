#include "tokenizer/jinja/subscript.h"

#include <algorithm>
#include <optional>

#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/methods.h"
#include "tokenizer/jinja/repr.h"

namespace forebay::jinja {

namespace {

std::string described(const Value& value) {
  return value.is_none() ? std::string("None") : fmt::format("{} object", type_name(value));
}

Value no_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  return runtime.undefined(fmt::format("'{}' has no attribute {}", described(value), quoted(name)));
}

/// Missing when there is none.
Value find_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Kind::kOpaque:
      return value.as<Opaque>().attribute(runtime, name);
    case Kind::kTuple:
      if (value.as<Tuple>().group_pair && value.as<Tuple>().items.size() == 2) {
        if (name == "grouper") return value.as<Tuple>().items[0];
        if (name == "list") return value.as<Tuple>().items[1];
      }
      break;
    case Kind::kRange: {
      const Range& range = value.as<Range>();
      if (name == "start") return Value::integer(range.start);
      if (name == "stop") return Value::integer(range.stop);
      if (name == "step") return Value::integer(range.step);
      return {};
    }
    default:
      break;
  }
  if (const Method* method = find_method(value, name))
    return runtime.heap().make<BoundMethod>(value, *method);
  return {};
}

/// Missing when there is none.
Value find_item(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is(Kind::kDict)) {
    if (!is_hashable(runtime, key)) return {};
    const Value* found = value.as<Dict>().find(runtime, key);
    return found != nullptr ? *found : Value();
  }
  if (!key.is_integral()) return {};
  if (!value.is(Kind::kString) && !value.is(Kind::kList) && !value.is(Kind::kTuple) &&
      !value.is(Kind::kRange))
    return {};
  const Int length = *length_of(value);
  Int index = key.to_int();
  if (index < 0) index += length;
  if (index < 0 || index >= length) return {};
  switch (value.kind()) {
    case Kind::kString: {
      const String& string = value.as<String>();
      const auto begin = string.is_ascii() ? static_cast<size_t>(index)
                                           : byte_offset(string.text, static_cast<int64_t>(index));
      if (!string.is_ascii()) runtime.spend_bytes(begin);
      const size_t end = code_point_at(string.text, begin).end;
      return runtime.string(string.text.substr(begin, end - begin), string.markup);
    }
    case Kind::kList:
      return value.as<List>().items[static_cast<size_t>(index)];
    case Kind::kTuple:
      return value.as<Tuple>().items[static_cast<size_t>(index)];
    default:
      return Value::integer(value.as<Range>().start + index * value.as<Range>().step);
  }
}

struct Indices {
  Int start, stop, step, count;
};

// Python's slice.indices(): bounds count from the end when negative, and are cut to the sequence.
Indices indices_of(const Value& start, const Value& stop, const Value& step_value, Int length) {
  const auto bound = [](const Value& value, Int if_absent) {
    if (value.is_absent()) return if_absent;
    if (!value.is_integral()) fail("slice indices must be integers or None, not '{}'", type_name(value));
    return value.to_int();
  };
  Int step = bound(step_value, 1);
  if (step == 0) fail("slice step cannot be zero");
  step = std::clamp<Int>(step, INT64_MIN, INT64_MAX);  // steps beyond the length are alike
  const Int lowest = step < 0 ? -1 : 0;
  const Int highest = step < 0 ? length - 1 : length;
  const auto cut = [&](Int index) {
    if (index < 0) return std::max(index < -length ? -1 : index + length, lowest);
    return std::min(index, highest);
  };
  Indices indices{};
  indices.step = step;
  indices.start = cut(bound(start, step < 0 ? length - 1 : 0));
  indices.stop = stop.is_absent() && step < 0 ? -1 : cut(bound(stop, length));
  if (step < 0) {
    indices.count = indices.start > indices.stop ? (indices.start - indices.stop - 1) / -step + 1 : 0;
  } else {
    indices.count = indices.stop > indices.start ? (indices.stop - indices.start - 1) / step + 1 : 0;
  }
  return indices;
}

Value slice_string(Runtime& runtime, const String& string, const Indices& indices) {
  if (indices.count == 0) return runtime.string({}, string.markup);
  const auto start = static_cast<int64_t>(indices.start), count = static_cast<int64_t>(indices.count);
  if (indices.step == 1) {
    const size_t begin = string.is_ascii() ? static_cast<size_t>(start) : byte_offset(string.text, start);
    const std::string_view rest = std::string_view(string.text).substr(begin);
    runtime.spend_bytes(string.is_ascii() ? 0 : begin);
    return runtime.string(std::string(rest.substr(
                              0, string.is_ascii() ? static_cast<size_t>(count) : byte_offset(rest, count))),
                          string.markup);
  }
  runtime.spend_bytes(string.text.size());
  runtime.spend(static_cast<uint64_t>(count) / 4);
  std::vector<size_t> offsets;  // of every code point and of the end
  offsets.reserve(static_cast<size_t>(string.length) + 1);
  for (size_t at = 0; at < string.text.size(); at = code_point_at(string.text, at).end) offsets.push_back(at);
  offsets.push_back(string.text.size());
  std::string out;
  Int index = indices.start;
  for (int64_t i = 0; i < count; ++i, index += indices.step) {
    const auto at = static_cast<size_t>(index);
    out.append(string.text, offsets[at], offsets[at + 1] - offsets[at]);
  }
  return runtime.string(std::move(out), string.markup);
}

std::vector<Value> slice_items(Runtime& runtime, const std::vector<Value>& items, const Indices& indices) {
  runtime.spend(static_cast<uint64_t>(indices.count) / 4);
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(indices.count));
  Int index = indices.start;
  for (Int i = 0; i < indices.count; ++i, index += indices.step)
    out.push_back(items[static_cast<size_t>(index)]);
  return out;
}

}  // namespace

Value attribute_of(Runtime& runtime, const Value& value, std::string_view name) {
  if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
  if (Value found = find_attribute(runtime, value, name); !found.is_missing()) return found;
  if (value.is(Kind::kDict)) {
    if (const Value* found = value.as<Dict>().find(name)) return *found;
  }
  return no_attribute(runtime, value, name);
}

Value item_of(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
  if (Value found = find_item(runtime, value, key); !found.is_missing()) return found;
  if (!key.is_string())
    return runtime.undefined(fmt::format("{} has no element {}", described(value), repr_of(runtime, key)));
  if (Value found = find_attribute(runtime, value, key.text()); !found.is_missing()) return found;
  return no_attribute(runtime, value, key.text());
}

Value slice_of(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
               const Value& step) {
  switch (value.kind()) {
    case Kind::kUndefined:
      fail("{}", value.as<Undefined>().message);
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      break;
    default:
      fail("'{}' object cannot be sliced", type_name(value));
  }
  const Indices indices = indices_of(start, stop, step, *length_of(value));
  switch (value.kind()) {
    case Kind::kString:
      return slice_string(runtime, value.as<String>(), indices);
    case Kind::kList:
      return runtime.list(slice_items(runtime, value.as<List>().items, indices));
    case Kind::kTuple:
      return runtime.tuple(slice_items(runtime, value.as<Tuple>().items, indices));
    default: {
      const Range& range = value.as<Range>();
      const Int step_by = range.step * indices.step;
      if (step_by > INT64_MAX || step_by < INT64_MIN) fail("range step beyond 64 bits");
      return runtime.heap().make<Range>(range.start + indices.start * range.step,
                                        range.start + indices.stop * range.step, step_by);
    }
  }
}

Value pure_attribute_of(Runtime& runtime, const Value& value, std::string_view name) {
  if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
  if (Value found = find_attribute(runtime, value, name); !found.is_missing()) return found;
  return no_attribute(runtime, value, name);
}

}  // namespace forebay::jinja
