#include "convert/json_object.h"

#include <fmt/format.h>

namespace forebay::convert {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLargestFile = 256ull << 20;

/// Integers come as 1e6, too.
std::optional<uint64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number >= 0 && number <= 0x1p53 && number == static_cast<double>(static_cast<uint64_t>(number)))
      return static_cast<uint64_t>(number);
  }
  return std::nullopt;
}

}  // namespace

Result<JsonObject> JsonObject::parse(std::string where, std::string_view text) {
  try {
    Json value = Json::parse(text);
    if (!value.is_object())
      return Error{Code::kCorrupt, fmt::format("{}: {}, wanted an object", where, value.type_name())};
    return JsonObject(std::move(where), std::move(value));
  } catch (const Json::exception& error) {
    return Error{Code::kCorrupt, fmt::format("{}: {}", where, error.what())};
  }
}

Result<JsonObject> JsonObject::read(Storage& storage, const Path& path) {
  const std::string text = TRY(read_text(storage, path, kLargestFile));
  return parse(path.string(), text);
}

Result<std::optional<JsonObject>> JsonObject::read_if_exists(Storage& storage, const Path& path) {
  if (!storage.exists(path)) return std::optional<JsonObject>();
  return std::optional<JsonObject>(TRY(read(storage, path)));
}

const Json* JsonObject::find(std::string_view key) const {
  const auto member = value_.find(key);
  return member == value_.end() || member->is_null() ? nullptr : &*member;
}

std::optional<JsonObject> JsonObject::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_object()) return std::nullopt;
  return JsonObject(fmt::format("{}: {}", where_, key), *value);
}

Error JsonObject::wrong(std::string_view key, std::string_view wanted, Code code) const {
  const Json* value = find(key);
  if (value == nullptr) return {code, fmt::format("{}: {} is missing, wanted {}", where_, key, wanted)};
  std::string seen = value->dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr size_t kLongest = 80;
  if (seen.size() > kLongest) seen = seen.substr(0, kLongest) + "...";
  return {code, fmt::format("{}: {} is {}, wanted {}", where_, key, seen, wanted)};
}

Result<uint64_t> JsonObject::integer(std::string_view key, uint64_t low, uint64_t high) const {
  const Json* value = find(key);
  const auto integer = value == nullptr ? std::nullopt : as_integer(*value);
  if (!integer || *integer < low || *integer > high)
    return wrong(key, fmt::format("an integer from {} to {}", low, high),
                 value == nullptr ? Code::kNotFound : Code::kCorrupt);
  return *integer;
}

Result<uint64_t> JsonObject::integer_or(std::string_view key, uint64_t fallback, uint64_t low,
                                        uint64_t high) const {
  if (!has(key)) return fallback;
  return integer(key, low, high);
}

Result<double> JsonObject::number_or(std::string_view key, double fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) return wrong(key, "a number");
  return value->get<double>();
}

Result<bool> JsonObject::boolean_or(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return wrong(key, "true or false");
  return value->get<bool>();
}

Result<std::string> JsonObject::string_or(std::string_view key, std::string fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) return wrong(key, "a string");
  return value->get<std::string>();
}

Result<std::vector<uint64_t>> JsonObject::integers(std::string_view key) const {
  std::vector<uint64_t> integers;
  const Json* value = find(key);
  if (value == nullptr) return integers;
  for (const Json& item : value->is_array() ? *value : Json::array({*value})) {
    const auto integer = as_integer(item);
    if (!integer) return wrong(key, "integers");
    integers.push_back(*integer);
  }
  return integers;
}

Result<std::vector<std::string>> JsonObject::strings(std::string_view key) const {
  std::vector<std::string> strings;
  const Json* value = find(key);
  if (value == nullptr) return strings;
  if (!value->is_array()) return wrong(key, "a list of strings");
  for (const Json& item : *value) {
    if (!item.is_string()) return wrong(key, "a list of strings");
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

}  // namespace forebay::convert
