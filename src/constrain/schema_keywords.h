/// What a JSON schema may say: its keywords, what they are about, and what is refused before anything is
/// compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "forebay/result.h"

namespace forebay {

/// Whether a keyword says something about values and is kept; annotations say nothing.
bool is_assertion(std::string_view keyword);
/// Errors: kUnsupported for a keyword that is neither, kInvalidArgument for a "type" that is none. `path` is
/// how they name the schema.
Result<void> check_keywords(const nlohmann::ordered_json& schema, const std::string& path);

/// "type" as a list; what the other keywords are about when there is none; empty: anything.
std::vector<std::string> types_of(const nlohmann::ordered_json& schema);
/// 2.0 is an integer too.
bool fits_type(const nlohmann::ordered_json& value, const std::string& type);
/// A count that may be absent. Errors: kInvalidArgument, kUnsupported for one too large.
Result<std::optional<int64_t>> count_at(const nlohmann::ordered_json& schema, const char* keyword,
                                        const std::string& path);
/// A pattern all of whose texts are of this format; null for one that is not known.
const char* pattern_of_format(std::string_view format);

/// "schema PATH: WHAT".
Error wrong(const std::string& path, std::string_view what);        // kInvalidArgument
Error unsupported(const std::string& path, std::string_view what);  // kUnsupported

}  // namespace forebay
