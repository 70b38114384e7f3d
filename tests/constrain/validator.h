/// A small JSON Schema validator, independent of the compiler: for tests.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace forebay {

/// Empty when `value` is valid, else what is wrong.
std::string find_violation(const nlohmann::ordered_json& schema, const nlohmann::ordered_json& value);

}  // namespace forebay
