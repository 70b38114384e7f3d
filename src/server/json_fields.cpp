#include "server/json_fields.h"

#include <cmath>

#include <fmt/format.h>

namespace forebay {
namespace {

constexpr int kMaxDepth = 100;

/// Before anything is built: values are copied and written by recursion.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

Error bad(std::string_view name, std::string_view message) {
  return {Code::kInvalidArgument, fmt::format("{}: {}", name, message)};
}

/// The parser's own words without its prefix, on one line.
std::string reason_of(const nlohmann::json::exception& error) {
  std::string text = error.what();
  if (const size_t end = text.find("] "); end != text.npos) text.erase(0, end + 2);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text.substr(0, 200);
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name) {
  if (is_too_deep(text)) return bad(name, fmt::format("nested deeper than {} levels", kMaxDepth));
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    return bad(name, "not JSON: " + reason_of(error));
  }
}

Result<Json> parse_object(std::string_view text, std::string_view name) {
  Json json = TRY(parse_json(text, name));
  if (!json.is_object()) return bad(name, "got " + describe(json) + ", expected an object");
  return json;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string describe(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = dump(value);
  if (text.size() <= 40) return text;
  size_t cut = 40;
  while ((static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return text.substr(0, cut) + "...";
}

const Json* Fields::find(std::string_view name) const {
  const auto found = object_->find(std::string(name));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

Error Fields::wrong(std::string_view name, std::string_view expected) const {
  const Json* value = find(name);
  return bad(path_of(name), fmt::format("{}, expected {}",
                                        value == nullptr ? "missing" : "got " + describe(*value), expected));
}

Error Fields::refuse(std::string_view name, std::string_view why) const {
  return bad(path_of(name), why);
}

Result<std::optional<bool>> Fields::boolean(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return wrong(name, "true or false");
  return std::optional(value->get<bool>());
}

Result<std::optional<int64_t>> Fields::integer(std::string_view name, int64_t min, int64_t max) const {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<int64_t>();
  const auto range = [&] { return wrong(name, fmt::format("an integer from {} to {}", min, max)); };
  int64_t integer = 0;
  if (value->is_number_unsigned()) {
    const auto big = value->get<uint64_t>();
    if (big > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return range();
    integer = static_cast<int64_t>(big);
  } else if (value->is_number_integer()) {
    integer = value->get<int64_t>();
  } else if (value->is_number_float()) {
    const double real = value->get<double>();
    if (std::trunc(real) != real || std::abs(real) > 9e15) return range();
    integer = static_cast<int64_t>(real);
  } else {
    return range();
  }
  if (integer < min || integer > max) return range();
  return std::optional(integer);
}

Result<std::optional<double>> Fields::number(std::string_view name, double min, double max) const {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number() || !(value->get<double>() >= min && value->get<double>() <= max))
    return wrong(name, fmt::format("a number from {} to {}", min, max));
  return std::optional(value->get<double>());
}

Result<std::optional<std::string>> Fields::string(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return wrong(name, "a string");
  return std::optional(value->get<std::string>());
}

Result<std::optional<std::string>> Fields::choice(std::string_view name, std::string_view choices) const {
  std::optional<std::string> value = TRY(string(name));
  if (!value) return value;
  const std::string all = fmt::format("|{}|", choices);
  if (value->find('|') != std::string::npos || all.find('|' + *value + '|') == std::string::npos) {
    std::string listed(choices);
    for (size_t at; (at = listed.find('|')) != std::string::npos;) listed.replace(at, 1, ", ");
    return wrong(name, "one of " + listed);
  }
  return value;
}

Result<const Json*> Fields::object(std::string_view name) const {
  const Json* value = find(name);
  if (value != nullptr && !value->is_object()) return wrong(name, "an object");
  return value;
}

Result<const Json*> Fields::list(std::string_view name) const {
  const Json* value = find(name);
  if (value != nullptr && !value->is_array()) return wrong(name, "a list");
  return value;
}

Result<std::string> Fields::required_string(std::string_view name) const {
  std::optional<std::string> value = TRY(string(name));
  if (!value) return wrong(name, "a string");
  return *std::move(value);
}

Result<const Json*> Fields::required_list(std::string_view name) const {
  const Json* value = TRY(list(name));
  if (value == nullptr) return wrong(name, "a list");
  return value;
}

}  // namespace forebay
