/// JSON as these files may hold it: checked for what the parser alone lets pass.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "forebay/result.h"

namespace forebay::safetensors {

/// Beside the tensors in a file's header.
inline constexpr const char* kMetadataKey = "__metadata__";

/// Errors: kCorrupt for what is not one JSON value, for a key that appears twice in an object, and for
/// nesting deeper than these formats have. Throws nothing but std::bad_alloc.
Result<nlohmann::json> parse_json(std::string_view text);

/// `text` in double quotes, one line of ASCII, cut when long.
std::string quote(std::string_view text);

}  // namespace forebay::safetensors
