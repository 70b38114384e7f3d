#include "tokenizer/jinja/arguments.h"

#include <algorithm>

namespace forebay::jinja {

Value Arguments::take(std::string_view name) {
  const auto found =
      std::find_if(named.begin(), named.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == named.end()) return {};
  Value value = std::move(found->second);
  named.erase(found);
  return value;
}

std::vector<Value> bind(std::string_view function, const Arguments& arguments,
                        std::initializer_list<std::string_view> names, size_t n_required) {
  std::vector<Value> bound(names.size());
  if (arguments.positional.size() > names.size())
    fail("{} takes at most {} arguments, got {}", function, names.size(), arguments.positional.size());
  std::copy(arguments.positional.begin(), arguments.positional.end(), bound.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end() || found->empty()) fail("{} takes no argument '{}'", function, name);
    Value& slot = bound[static_cast<size_t>(found - names.begin())];
    if (!slot.is_missing()) fail("{} got argument '{}' twice", function, name);
    slot = value;
  }
  for (size_t i = 0; i < n_required; ++i)
    if (bound[i].is_missing()) fail("{} wants at least {} arguments", function, n_required);
  return bound;
}

Int int_or(const Value& value, Int if_absent, std::string_view parameter) {
  if (value.is_absent()) return if_absent;
  if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
  if (!value.is_integral()) fail("{} must be an integer, not '{}'", parameter, type_name(value));
  return value.to_int();
}

bool bool_or(const Value& value, bool if_missing) {
  return value.is_missing() ? if_missing : truthy(value);
}

std::string text_or(Runtime& runtime, const Value& value, std::string_view if_absent,
                    std::string_view parameter) {
  if (value.is_absent()) return std::string(if_absent);
  if (!value.is_string()) fail("{} must be a string, not '{}'", parameter, type_name(value));
  runtime.spend_bytes(value.text().size());
  return std::string(value.text());
}

int64_t size_or(const Value& value, int64_t if_absent, std::string_view parameter) {
  constexpr Int kLimit = INT64_MAX / 4;
  return static_cast<int64_t>(std::clamp(int_or(value, if_absent, parameter), -kLimit, kLimit));
}

}  // namespace forebay::jinja
