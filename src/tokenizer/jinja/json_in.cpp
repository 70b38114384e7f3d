#include <nlohmann/json.hpp>

#include "tokenizer/jinja/json.h"

namespace forebay::jinja {

namespace {

/// Not Runtime::string: what the caller passes is not held to the limits.
Value input_string(Runtime& runtime, const std::string& text) {
  const Ref<String> string = runtime.heap().make<String>(repaired(text), false);
  runtime.heap().charge(*string, text.size());
  return string;
}

}  // namespace

Value from_json(Runtime& runtime, const nlohmann::ordered_json& json) {
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::boolean:
      return Value::boolean(json.get_ref<const bool&>());
    case Type::number_integer:
      return Value::integer(json.get_ref<const int64_t&>());
    case Type::number_unsigned:
      return Value::integer(json.get_ref<const uint64_t&>());
    case Type::number_float:
      return Value::real(json.get_ref<const double&>());
    case Type::string:
      return input_string(runtime, json.get_ref<const std::string&>());
    case Type::array: {
      const Nesting nesting(runtime);
      std::vector<Value> items;
      items.reserve(json.size());
      for (const nlohmann::ordered_json& item : json) items.push_back(from_json(runtime, item));
      return runtime.list(std::move(items));
    }
    case Type::object: {
      const Nesting nesting(runtime);
      const Ref<Dict> dict = runtime.dict();
      for (const auto& [key, value] : json.get_ref<const nlohmann::ordered_json::object_t&>())
        dict->set(runtime, input_string(runtime, key), from_json(runtime, value));
      return dict;
    }
    case Type::null:
    case Type::binary:
    case Type::discarded:
      break;
  }
  return Value::none();
}

}  // namespace forebay::jinja
