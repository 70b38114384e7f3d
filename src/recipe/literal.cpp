#include <cmath>

#include <fmt/format.h>

#include "recipe/toml.h"

namespace forebay::toml_text {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // "inf" has an n
  return text;
}

namespace {

struct Literal {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const Other& other) const { return other.what; }
  std::string operator()(const std::vector<Scalar>& values) const {
    std::string out = "[";
    for (const Scalar& value : values) out += (out.size() > 1 ? ", " : "") + std::visit(*this, value);
    return out + "]";
  }
};

}  // namespace

std::string literal(const Value& value) {
  return std::visit(Literal{}, value);
}

}  // namespace forebay::toml_text
