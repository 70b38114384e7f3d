/// Lookups that forgive what GGUF writers vary: widths, signs, one value or one per layer.
#include <algorithm>
#include <functional>
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

/// Stores `value` as a To if every bit of its meaning survives; ints become doubles, bools 0/1, and 0/1
/// bools.
template <typename To, typename From>
bool convert(const From& value, To& out) {
  constexpr bool kFromInteger = std::is_same_v<From, uint64_t> || std::is_same_v<From, int64_t>;
  if constexpr (std::is_same_v<To, From>) {
    out = value;
    return true;
  } else if constexpr (std::is_same_v<To, int64_t> && std::is_same_v<From, bool>) {
    out = value;
    return true;
  } else if constexpr (!kFromInteger || std::is_same_v<To, std::string>) {
    return false;
  } else if constexpr (std::is_same_v<To, bool>) {
    out = value == 1;
    return value == 0 || value == 1;
  } else if constexpr (std::is_same_v<To, double>) {
    out = static_cast<double>(value);
    return true;
  } else {
    out = static_cast<To>(value);
    return std::in_range<To>(value);
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
  To out{};
  const auto from_array = [&](const auto& items) {
    using Item = typename std::decay_t<decltype(items)>::value_type;
    const bool all_equal =
        std::adjacent_find(items.begin(), items.end(), std::not_equal_to<>()) == items.end();
    return !items.empty() && all_equal && convert<To, Item>(items.front(), out);
  };
  const auto from_any = [&]<typename Data>(const Data& data) {
    if constexpr (std::is_same_v<Data, GgufArray>)
      return std::visit(from_array, data);
    else
      return convert<To, Data>(data, out);
  };
  if (!std::visit(from_any, value->data)) return wrong_kind<To>(key, *value);
  return out;
}

template <typename To>
Result<std::vector<To>> get_list(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue* value = metadata.find(key);
  if (value == nullptr) return missing(key);
  std::vector<To> out;
  const auto append = [&]<typename Item>(const Item& item) {
    To converted{};
    if (!convert<To, Item>(item, converted)) return false;
    out.push_back(converted);
    return true;
  };
  const auto append_any = [&]<typename Data>(const Data& data) {
    if constexpr (std::is_same_v<Data, GgufArray>)
      return std::visit([&](const auto& items) { return std::all_of(items.begin(), items.end(), append); },
                        data);
    else
      return append(data);
  };
  if (!std::visit(append_any, value->data)) return wrong_kind<To>(key, *value);
  return out;
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
