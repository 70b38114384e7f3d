/// JSON as a model must write it: one value, nothing around it, no name twice.
#pragma once

#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

namespace forebay::train {

/// Nothing for text that is not strict JSON, or is over 4096 bytes.
std::optional<nlohmann::json> parse_strict_json(std::string_view text);

}  // namespace forebay::train
