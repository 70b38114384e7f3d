/// What template expressions evaluate to: Python's values, as far as templates can make them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizer/jinja/heap.h"
#include "tokenizer/jinja/unicode.h"

namespace forebay::jinja {

class Runtime;
class Value;
struct Arguments;

/// Wider than any JSON integer, so that unsigned 64-bit ids survive. Arithmetic beyond it is an error.
__extension__ using Int = __int128;

enum class Kind : uint8_t {
  kMissing,  // no value at all: an empty variable slot, an argument not given
  kNone,
  kBool,
  kInt,
  kFloat,
  kUndefined,  // the first kind that is an object
  kString,
  kList,
  kTuple,
  kDict,
  kView,  // dict.keys(), values(), items()
  kRange,
  kIterator,  // what lazy filters return; can be walked once
  kOpaque,    // namespaces, loops, macros, functions: known by their virtual functions
};

class Value {
 public:
  Value() : kind_(Kind::kMissing) {}
  Value(const Value& other) : kind_(other.kind_), payload_(other.payload_) {
    if (is_object()) payload_.object->retain();
  }
  Value(Value&& other) noexcept : kind_(other.kind_), payload_(other.payload_) {
    other.kind_ = Kind::kMissing;
  }
  Value& operator=(const Value& other) {
    Value copy(other);
    return *this = std::move(copy);
  }
  Value& operator=(Value&& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(payload_, other.payload_);
    return *this;
  }
  ~Value() {
    if (is_object()) payload_.object->release();
  }

  static Value none() { return Value(Kind::kNone); }
  static Value boolean(bool value) {
    Value result(Kind::kBool);
    result.payload_.integer = value ? 1 : 0;
    return result;
  }
  static Value integer(Int value) {
    Value result(Kind::kInt);
    result.payload_.integer = value;
    return result;
  }
  static Value real(double value) {
    Value result(Kind::kFloat);
    result.payload_.real = value;
    return result;
  }
  /// Of an object type, which names its kind.
  template <typename T>
  Value(const Ref<T>& object) : Value(object.get()) {}
  template <typename T>
  explicit Value(T* object) : kind_(T::kKind) {
    payload_.object = object;
    object->retain();
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_missing() const { return is(Kind::kMissing); }
  bool is_undefined() const { return is(Kind::kUndefined); }
  bool is_none() const { return is(Kind::kNone); }
  bool is_string() const { return is(Kind::kString); }
  /// None or not given: what optional parameters default to.
  bool is_absent() const { return is_missing() || is_none(); }
  /// Booleans are integers, as in Python.
  bool is_integral() const { return is(Kind::kBool) || is(Kind::kInt); }
  bool is_number() const { return is_integral() || is(Kind::kFloat); }

  Int to_int() const { return payload_.integer; }  // kBool, kInt
  double to_double() const {                       // numbers
    return is(Kind::kFloat) ? payload_.real : static_cast<double>(payload_.integer);
  }
  /// The object, which the caller knows to be a T by its kind.
  template <typename T>
  T& as() const {
    return static_cast<T&>(*payload_.object);
  }
  bool is_object() const { return kind_ >= Kind::kUndefined; }
  const Object* identity() const { return payload_.object; }  // of an object
  std::string_view text() const;                              // kString

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_;
  union Payload {
    Int integer = 0;
    double real;
    Object* object;
  } payload_;
};

struct String : Object {
  static constexpr Kind kKind = Kind::kString;
  String(std::string t, bool is_markup)
      : text(std::move(t)), length(n_code_points(text)), markup(is_markup) {}
  bool is_ascii() const { return static_cast<size_t>(length) == text.size(); }

  const std::string text;
  const int64_t length;  // code points
  const bool markup;     // marked safe: what joins it is HTML-escaped
};

inline std::string_view Value::text() const {
  return as<String>().text;
}

/// Why a value is not there: told when something is attempted with it.
struct Undefined : Object {
  static constexpr Kind kKind = Kind::kUndefined;
  explicit Undefined(std::string m) : message(std::move(m)) {}
  const std::string message;
};

struct List : Object {
  static constexpr Kind kKind = Kind::kList;
  explicit List(std::vector<Value> v) : items(std::move(v)) {}
  void forget() override { std::exchange(items, {}); }
  std::vector<Value> items;
};

struct Tuple : Object {
  static constexpr Kind kKind = Kind::kTuple;
  explicit Tuple(std::vector<Value> v, bool is_group_pair = false)
      : items(std::move(v)), group_pair(is_group_pair) {}
  void forget() override { std::exchange(items, {}); }
  std::vector<Value> items;
  const bool group_pair;  // from groupby: items are also called `grouper` and `list`
};

/// In insertion order. Keys are hashable (compare.h).
class Dict : public Object {
 public:
  static constexpr Kind kKind = Kind::kDict;
  struct Entry {
    Value key;
    uint64_t hash;
    Value value;
  };

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }

  /// Null when absent.
  const Value* find(Runtime& runtime, const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Runtime& runtime, const Value& key, Value value);
  /// Whether it was there.
  bool erase(Runtime& runtime, const Value& key);
  void clear() { forget(); }
  void forget() override {
    index_.clear();
    std::exchange(entries_, {});
  }

 private:
  /// Position of the entry with this hash that `matches`, or size().
  template <typename F>
  size_t position(uint64_t hash, F matches) const;
  void rebuild_index();

  std::vector<Entry> entries_;
  std::unordered_multimap<uint64_t, size_t> index_;  // hash -> position; empty while the dict is small
};

struct View : Object {
  static constexpr Kind kKind = Kind::kView;
  enum class Part { kKeys, kValues, kItems };
  View(Ref<Dict> d, Part p) : dict(std::move(d)), part(p) {}
  void forget() override { dict = {}; }
  Ref<Dict> dict;
  const Part part;
};

struct Range : Object {
  static constexpr Kind kKind = Kind::kRange;
  Range(Int start_at, Int stop_at, Int step_by) : start(start_at), stop(stop_at), step(step_by) {}
  Int length() const {
    if (step > 0) return stop > start ? (stop - start - 1) / step + 1 : 0;
    return start > stop ? (start - stop - 1) / -step + 1 : 0;
  }
  const Int start, stop, step;  // of 64 bits each, so that no length overflows
};

class Iterator : public Object {
 public:
  static constexpr Kind kKind = Kind::kIterator;
  /// Whether there was another item, put into `item`.
  virtual bool next(Runtime& runtime, Value& item) = 0;
};

/// Everything else.
class Opaque : public Object {
 public:
  static constexpr Kind kKind = Kind::kOpaque;
  virtual std::string_view type_name() const = 0;
  virtual std::string repr(Runtime& runtime) const;
  virtual bool is_callable() const { return false; }
  virtual Value call(Runtime& runtime, Arguments& arguments);
  /// `value.name`; missing when there is no such attribute.
  virtual Value attribute(Runtime& runtime, std::string_view name);
};

/// The opaque object of type T that `value` is, or null.
template <typename T>
T* opaque_as(const Value& value) {
  return value.is(Kind::kOpaque) ? dynamic_cast<T*>(&value.as<Opaque>()) : nullptr;
}

/// Python's name of the type: 'str', 'NoneType', 'dict'.
std::string_view type_name(const Value& value);

bool truthy(const Value& value);

}  // namespace forebay::jinja
