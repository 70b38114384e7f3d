#include "gguf/describe.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include "gguf/text.h"

namespace forebay::gguf {
namespace {

enum class Form { kPlain, kJson };

/// The shortest digits that read back as the same value of the type it has in the file.
std::string number(double value, GgufType type) {
  return type == GgufType::kF32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
}

template <typename T>
std::string item_string(const T& item, GgufType type, Form form) {
  if constexpr (std::is_same_v<T, std::string>)
    return form == Form::kJson ? json_string(item) : quote(item);
  else if constexpr (std::is_same_v<T, double>)
    return form == Form::kJson && !std::isfinite(item) ? "null" : number(item, type);
  else
    return fmt::format("{}", item);  // integers; bool as true or false
}

template <typename T>
std::string list_string(const std::vector<T>& items, GgufType type, size_t max_items, Form form) {
  const size_t n_shown = std::min(items.size(), max_items);
  std::string out = "[";
  for (size_t i = 0; i < n_shown; ++i) {
    if (i > 0) out += ", ";
    out += item_string(static_cast<const T&>(items[i]), type, form);
  }
  if (n_shown < items.size() && form == Form::kPlain)
    out += fmt::format("{}... {} in all", n_shown > 0 ? ", " : "", items.size());
  return out += "]";
}

std::string any_string(const GgufValue& value, size_t max_items, Form form) {
  const auto of_list = [&](const auto& items) { return list_string(items, value.element, max_items, form); };
  const auto of_any = [&](const auto& data) {
    if constexpr (std::is_same_v<std::decay_t<decltype(data)>, GgufArray>)
      return std::visit(of_list, data);
    else
      return item_string(data, value.type, form);
  };
  return std::visit(of_any, value.data);
}

}  // namespace

std::string type_string(const GgufValue& value) {
  const auto* array = std::get_if<GgufArray>(&value.data);
  if (array == nullptr) return std::string(name_of(value.type));
  return fmt::format("{}[{}]", name_of(value.element), n_items(*array));
}

std::string value_string(const GgufValue& value, size_t max_items) {
  return any_string(value, max_items, Form::kPlain);
}

std::string value_json(const GgufValue& value, size_t max_items) {
  return any_string(value, max_items, Form::kJson);
}

}  // namespace forebay::gguf
