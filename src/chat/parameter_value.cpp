#include "chat/parameter_value.h"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace forebay {
namespace {

std::string as_string(std::string_view text) {
  std::string json = "\"";
  append_escaped(json, text);
  return json += '"';
}

bool is_integral(const std::string& number) {
  if (number.find_first_of(".eE") == std::string::npos) return true;
  const double value = std::strtod(number.c_str(), nullptr);
  return std::isfinite(value) && value == std::floor(value);
}

bool is_allowed(const std::string& json, const AllowedTypes& types) {
  switch (json[0]) {
    case '{':
      return types.object || types.any;
    case '[':
      return types.array || types.any;
    case '"':
      return types.string;
    case 't':
    case 'f':
      return types.boolean || types.any;
    case 'n':
      return types.null || types.any;
    default:
      return types.number || types.any || (types.integer && is_integral(json));
  }
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \n\t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \n\t\r") - first + 1);
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<int>(c));
        else
          out += c;
    }
  }
}

ParameterValue parameter_value(std::string_view text, const AllowedTypes& types) {
  std::string value(trimmed(text));
  if (types.string) return {types.null && value == "null" ? "null" : as_string(text)};
  if (value == "True" && (types.boolean || types.any)) return {"true"};
  if (value == "False" && (types.boolean || types.any)) return {"false"};
  if (value == "None" && types.null) return {"null"};
  if (!value.empty() && nlohmann::json::accept(value) && is_allowed(value, types)) return {std::move(value)};
  return {as_string(text), types.any};
}

}  // namespace forebay
