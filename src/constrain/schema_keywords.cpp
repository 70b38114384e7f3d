#include "constrain/schema_keywords.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxCount = 20'000;  // of characters or elements that a schema counts

const std::set<std::string, std::less<>> kAnnotations = {
    "title",     "description",     "default", "examples",        "example",    "$schema",
    "$id",       "$comment",        "$defs",   "definitions",     "deprecated", "readOnly",
    "writeOnly", "contentEncoding", "strict",  "contentMediaType"};
const std::set<std::string, std::less<>> kKnown = {"type",
                                                   "enum",
                                                   "const",
                                                   "properties",
                                                   "required",
                                                   "additionalProperties",
                                                   "items",
                                                   "prefixItems",
                                                   "anyOf",
                                                   "oneOf",
                                                   "allOf",
                                                   "$ref",
                                                   "minLength",
                                                   "maxLength",
                                                   "minItems",
                                                   "maxItems",
                                                   "pattern",
                                                   "format",
                                                   "minimum",
                                                   "maximum",
                                                   "exclusiveMinimum",
                                                   "exclusiveMaximum"};

constexpr std::array<const char*, 7> kTypes = {"null",   "boolean", "integer", "number",
                                               "string", "array",   "object"};

/// Formats as patterns; every text of theirs is valid (no 30th of February).
const std::map<std::string, const char*, std::less<>> kFormats = {
    {"date", R"(^[12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])$)"},
    {"time", R"(^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$)"},
    {"date-time",
     R"(^[12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?)"
     R"((Z|[+-]([01]\d|2[0-3]):[0-5]\d)$)"},
    {"uuid", R"(^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$)"},
    {"ipv4", R"(^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$)"},
    {"email",
     R"(^[A-Za-z0-9_+-]{1,32}(\.[A-Za-z0-9_+-]{1,32}){0,3}@[A-Za-z0-9-]{1,32}(\.[A-Za-z0-9-]{1,32}){1,3}$)"},
    {"uri", R"(^https?://[A-Za-z0-9-]{1,32}(\.[A-Za-z0-9-]{1,32}){1,3}(/[A-Za-z0-9_.~-]{0,64}){0,8}$)"},
};

bool asserts_nothing(const std::string& keyword, const Json& value) {
  if (keyword == "uniqueItems") return value == false;
  if (keyword == "minProperties" || keyword == "minContains") return value == 0;
  if (keyword == "patternProperties" || keyword == "dependentRequired" || keyword == "dependentSchemas")
    return value.is_object() && value.empty();
  return false;
}

std::string type_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_string()) return "string";
  return value.is_array() ? "array" : "object";
}

}  // namespace

bool is_assertion(std::string_view keyword) {
  return kKnown.contains(keyword);
}

const char* pattern_of_format(std::string_view format) {
  const auto known = kFormats.find(format);
  return known == kFormats.end() ? nullptr : known->second;
}

bool fits_type(const Json& value, const std::string& type) {
  const std::string own = type_of(value);
  return own == type || (own == "integer" && type == "number") ||
         (own == "number" && type == "integer" && value.get<double>() == std::floor(value.get<double>()));
}

std::vector<std::string> types_of(const Json& schema) {
  std::vector<std::string> types;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_string()) return {type->get<std::string>()};
    for (const Json& one : *type) types.push_back(one.get<std::string>());
    return types;
  }
  const auto has = [&](std::initializer_list<const char*> keywords) {
    return std::any_of(keywords.begin(), keywords.end(), [&](const char* k) { return schema.contains(k); });
  };
  if (has({"properties", "required", "additionalProperties"})) types.push_back("object");
  if (has({"items", "prefixItems", "minItems", "maxItems"})) types.push_back("array");
  if (has({"minLength", "maxLength", "pattern", "format"})) types.push_back("string");
  if (has({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})) types.push_back("number");
  return types;
}

Error wrong(const std::string& path, std::string_view what) {
  return Error{Code::kInvalidArgument, fmt::format("schema {}: {}", path, what)};
}
Error unsupported(const std::string& path, std::string_view what) {
  return Error{Code::kUnsupported, fmt::format("schema {}: {}", path, what)};
}

Result<std::optional<int64_t>> count_at(const Json& schema, const char* keyword, const std::string& path) {
  const auto found = schema.find(keyword);
  if (found == schema.end()) return std::optional<int64_t>();
  const bool whole = found->is_number_integer() || (found->is_number() && found->get<double>() <= 1e15 &&
                                                    found->get<double>() == std::floor(found->get<double>()));
  if (!whole || found->get<double>() < 0) return wrong(path, fmt::format("{}: expected a count", keyword));
  if (found->get<double>() > static_cast<double>(kMaxCount))
    return unsupported(path, fmt::format("{} above {}", keyword, kMaxCount));
  return std::optional(static_cast<int64_t>(found->get<double>()));
}

Result<void> check_keywords(const Json& schema, const std::string& path) {
  for (const auto& [keyword, value] : schema.items()) {
    if (kAnnotations.contains(keyword) || kKnown.contains(keyword) || asserts_nothing(keyword, value))
      continue;
    return unsupported(path, fmt::format("keyword '{}' is not supported", keyword.substr(0, 60)));
  }
  const auto type = schema.find("type");
  if (type == schema.end()) return {};
  const auto known = [](const Json& name) {
    return name.is_string() && std::any_of(kTypes.begin(), kTypes.end(), [&](const char* t) {
             return name.get_ref<const std::string&>() == t;
           });
  };
  if (type->is_array() ? type->empty() || !std::all_of(type->begin(), type->end(), known) : !known(*type))
    return wrong(
        path,
        "type: expected one of null, boolean, integer, number, string, array, object, or a list of them");
  return {};
}

}  // namespace forebay
