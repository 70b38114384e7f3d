/// JSON in (a render's context) and out (the tojson filter, which is Python's json.dumps).
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

Value from_json(Runtime& runtime, const nlohmann::ordered_json& json);

struct JsonStyle {
  bool ascii_only = false;
  std::optional<std::string> indent;  // one level of it; absent: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// Fails for what JSON cannot say: "Object of type Undefined is not JSON serializable".
std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace forebay::jinja
