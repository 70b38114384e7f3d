/// Lookups that forgive what GGUF writers vary: widths, signs, one value or one per layer.
#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "gguf/describe.h"
#include "gguf/gguf.h"
#include "gguf/text.h"

namespace forebay {
namespace {

using gguf::quote;

template <typename To>
constexpr std::string_view kWanted;
template <>
constexpr std::string_view kWanted<uint64_t> = "an integer of 0 or more";
template <>
constexpr std::string_view kWanted<int64_t> = "a signed 64-bit integer";
template <>
constexpr std::string_view kWanted<double> = "a number";
template <>
constexpr std::string_view kWanted<bool> = "true or false";
template <>
constexpr std::string_view kWanted<std::string> = "a string";

/// `value` as a To, if every bit of its meaning survives; ints become doubles, bools 0/1, and 0/1 bools.
template <typename To, typename From>
std::optional<To> convert(const From& value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, std::string> || !std::is_arithmetic_v<From>) {
    return std::nullopt;
  } else if constexpr (std::is_same_v<From, bool>) {
    if constexpr (std::is_same_v<To, int64_t>) return value ? 1 : 0;
    return std::nullopt;
  } else if constexpr (std::is_same_v<From, double>) {
    return std::nullopt;
  } else if constexpr (std::is_same_v<To, double>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_same_v<To, bool>) {
    return value == 0 || value == 1 ? std::optional<bool>(value == 1) : std::nullopt;
  } else {
    return std::in_range<To>(value) ? std::optional<To>(static_cast<To>(value)) : std::nullopt;
  }
}

Error missing(std::string_view key) {
  return {Code::kNotFound, fmt::format("key {} not found", quote(key))};
}

template <typename To>
Error wrong_kind(std::string_view key, const GgufValue& value) {
  return {Code::kCorrupt, fmt::format("key {}: {} {}, wanted {}", quote(key), gguf::type_string(value),
                                      gguf::value_string(value, 4), kWanted<To>)};
}

template <typename To>
Result<To> get_scalar(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue* value = metadata.find(key);
  if (value == nullptr) return missing(key);
  const auto from_array = [](const auto& items) -> std::optional<To> {
    const bool all_equal =
        std::adjacent_find(items.begin(), items.end(), std::not_equal_to<>()) == items.end();
    if (items.empty() || !all_equal) return std::nullopt;
    using Item = typename std::decay_t<decltype(items)>::value_type;
    return convert<To>(static_cast<const Item&>(items.front()));
  };
  const auto from_any = [&](const auto& data) -> std::optional<To> {
    if constexpr (std::is_same_v<std::decay_t<decltype(data)>, GgufArray>)
      return std::visit(from_array, data);
    else
      return convert<To>(data);
  };
  if (std::optional<To> converted = std::visit(from_any, value->data)) return *std::move(converted);
  return wrong_kind<To>(key, *value);
}

template <typename To>
Result<std::vector<To>> get_list(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue* value = metadata.find(key);
  if (value == nullptr) return missing(key);
  std::vector<To> list;
  const auto append = [&](const auto& item) {
    const std::optional<To> converted = convert<To>(item);
    if (converted) list.push_back(*converted);
    return converted.has_value();
  };
  const auto append_all = [&](const auto& items) {
    using Item = typename std::decay_t<decltype(items)>::value_type;
    list.reserve(items.size());
    return std::all_of(items.begin(), items.end(),
                       [&](const auto& item) { return append(static_cast<const Item&>(item)); });
  };
  const bool ok = std::visit(
      [&](const auto& data) {
        if constexpr (std::is_same_v<std::decay_t<decltype(data)>, GgufArray>)
          return std::visit(append_all, data);
        else
          return append(data);
      },
      value->data);
  if (!ok) return wrong_kind<To>(key, *value);
  return list;
}

template <typename To>
Result<To> get_or(const GgufMetadata& metadata, std::string_view key, To fallback) {
  if (!metadata.has(key)) return fallback;
  return get_scalar<To>(metadata, key);
}

}  // namespace

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto at = index_.find(key);
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

void GgufMetadata::set(std::string key, GgufValue value) {
  const auto [at, is_new] = index_.try_emplace(key, entries_.size());
  if (is_new)
    entries_.emplace_back(std::move(key), std::move(value));
  else
    entries_[at->second].second = std::move(value);
}

Result<uint64_t> GgufMetadata::get_uint(std::string_view key) const {
  return get_scalar<uint64_t>(*this, key);
}
Result<int64_t> GgufMetadata::get_int(std::string_view key) const {
  return get_scalar<int64_t>(*this, key);
}
Result<double> GgufMetadata::get_float(std::string_view key) const {
  return get_scalar<double>(*this, key);
}
Result<bool> GgufMetadata::get_bool(std::string_view key) const {
  return get_scalar<bool>(*this, key);
}
Result<std::string> GgufMetadata::get_string(std::string_view key) const {
  return get_scalar<std::string>(*this, key);
}

Result<std::vector<uint64_t>> GgufMetadata::get_uints(std::string_view key) const {
  return get_list<uint64_t>(*this, key);
}
Result<std::vector<int64_t>> GgufMetadata::get_ints(std::string_view key) const {
  return get_list<int64_t>(*this, key);
}
Result<std::vector<double>> GgufMetadata::get_floats(std::string_view key) const {
  return get_list<double>(*this, key);
}

Result<std::span<const std::string>> GgufMetadata::get_strings(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(key);
  if (const auto* one = std::get_if<std::string>(&value->data)) return std::span<const std::string>(one, 1);
  if (const auto* array = std::get_if<GgufArray>(&value->data)) {
    if (const auto* strings = std::get_if<std::vector<std::string>>(array))
      return std::span<const std::string>(*strings);
    // An empty array has no elements to be of the wrong kind.
    if (n_items(*array) == 0) return std::span<const std::string>();
  }
  return wrong_kind<std::string>(key, *value);
}

Result<uint64_t> GgufMetadata::get_uint_or(std::string_view key, uint64_t fallback) const {
  return get_or<uint64_t>(*this, key, fallback);
}
Result<double> GgufMetadata::get_float_or(std::string_view key, double fallback) const {
  return get_or<double>(*this, key, fallback);
}
Result<bool> GgufMetadata::get_bool_or(std::string_view key, bool fallback) const {
  return get_or<bool>(*this, key, fallback);
}
Result<std::string> GgufMetadata::get_string_or(std::string_view key, std::string fallback) const {
  return get_or<std::string>(*this, key, std::move(fallback));
}

}  // namespace forebay
