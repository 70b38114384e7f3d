#include "recipe/toml.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace forebay::toml_text {
namespace {

std::string one_line(std::string_view text) {
  std::string out(text.substr(0, 200));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return out;
}

std::optional<Scalar> scalar(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  return std::nullopt;
}

Value value_of(const toml::node& node) {
  if (const std::optional<Scalar> value = scalar(node))
    return std::visit([](const auto& v) { return Value(v); }, *value);
  const toml::array* array = node.as_array();
  if (array == nullptr) return Other{"a date or a time"};
  std::vector<Scalar> values;
  for (const toml::node& element : *array) {
    std::optional<Scalar> value = scalar(element);
    if (!value) return Other{"an array of something else than numbers and text"};
    values.push_back(*std::move(value));
  }
  return values;
}

Result<void> flatten(const toml::table& table, const std::string& prefix, std::string_view name,
                     std::map<std::string, Entry>& out) {
  for (const auto& [key, node] : table) {
    const std::string full = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      TRY(flatten(*inner, full + ".", name, out));
      continue;
    }
    const auto line = static_cast<int>(node.source().begin.line);
    // Only a quoted key with a point in it can be there already.
    if (!out.emplace(full, Entry{value_of(node), line}).second)
      return Error{Code::kCorrupt, fmt::format("{}:{}: {} is given twice", name, line, one_line(full))};
  }
  return {};
}

}  // namespace

Result<std::map<std::string, Entry>> parse(std::string_view text, std::string_view name) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Error{Code::kCorrupt, fmt::format("{}:{}:{}: {}", name, error.source().begin.line,
                                             error.source().begin.column, one_line(error.description()))};
  }
  std::map<std::string, Entry> entries;
  TRY(flatten(parsed.table(), "", name, entries));
  return entries;
}

}  // namespace forebay::toml_text
