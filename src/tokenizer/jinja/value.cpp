#include "tokenizer/jinja/value.h"

#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

namespace {

// Below this many entries a scan beats the index.
constexpr size_t kIndexFrom = 16;

}  // namespace

template <typename F>
size_t Dict::position(uint64_t hash, F matches) const {
  if (index_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].hash == hash && matches(entries_[i].key)) return i;
    return entries_.size();
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto candidate = begin; candidate != end; ++candidate)
    if (matches(entries_[candidate->second].key)) return candidate->second;
  return entries_.size();
}

const Value* Dict::find(Runtime& runtime, const Value& key) const {
  const size_t i =
      position(hash_of(runtime, key), [&](const Value& other) { return equals(runtime, key, other); });
  return i < entries_.size() ? &entries_[i].value : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  const size_t i =
      position(hash_of(key), [&](const Value& other) { return other.is_string() && other.text() == key; });
  return i < entries_.size() ? &entries_[i].value : nullptr;
}

void Dict::set(Runtime& runtime, const Value& key, Value value) {
  const uint64_t hash = hash_of(runtime, key);
  const size_t i = position(hash, [&](const Value& other) { return equals(runtime, key, other); });
  if (i < entries_.size()) {
    entries_[i].value = std::move(value);
    return;
  }
  // An entry, and its share of the index.
  runtime.heap().charge(*this, sizeof(Entry) + 32);
  entries_.push_back({key, hash, std::move(value)});
  if (!index_.empty()) {
    index_.emplace(hash, i);
  } else if (entries_.size() >= kIndexFrom) {
    rebuild_index();
  }
}

bool Dict::erase(Runtime& runtime, const Value& key) {
  const size_t i =
      position(hash_of(runtime, key), [&](const Value& other) { return equals(runtime, key, other); });
  if (i == entries_.size()) return false;
  runtime.spend(entries_.size());
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  index_.clear();
  if (entries_.size() >= kIndexFrom) rebuild_index();
  return true;
}

void Dict::rebuild_index() {
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].hash, i);
}

std::string Opaque::repr(Runtime&) const {
  return fmt::format("<{}>", type_name());
}

Value Opaque::call(Runtime&, Arguments&) {
  fail("'{}' object is not callable", type_name());
}

Value Opaque::attribute(Runtime&, std::string_view) {
  return {};
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.as<String>().markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kView:
      switch (value.as<View>().part) {
        case View::Part::kKeys:
          return "dict_keys";
        case View::Part::kValues:
          return "dict_values";
        case View::Part::kItems:
          return "dict_items";
      }
      break;
    case Kind::kRange:
      return "range";
    case Kind::kIterator:
      return "generator";
    case Kind::kOpaque:
      return value.as<Opaque>().type_name();
  }
  return "object";
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.to_int() != 0;
    case Kind::kFloat:
      return value.to_double() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
      return !value.as<List>().items.empty();
    case Kind::kTuple:
      return !value.as<Tuple>().items.empty();
    case Kind::kDict:
      return value.as<Dict>().size() != 0;
    case Kind::kView:
      return value.as<View>().dict->size() != 0;
    case Kind::kRange:
      return value.as<Range>().length() != 0;
    case Kind::kIterator:
    case Kind::kOpaque:
      return true;
  }
  return true;
}

}  // namespace forebay::jinja
