#include "core/parse.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace forebay {
namespace {

/// Bytes in a unit written in lower case; nothing for an unknown one.
std::optional<double> unit_bytes(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  constexpr std::string_view kPrefixes = "kmgt";
  const size_t power = kPrefixes.find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  if (rest.empty() || rest == "ib") return std::pow(1024.0, power + 1);
  if (rest == "b") return std::pow(1000.0, power + 1);
  return std::nullopt;
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  const Error malformed{Code::kInvalidArgument,
                        fmt::format("'{}' is not a size such as 4096, 512M or 1.5GiB", text)};
  const char* const end = text.data() + text.size();
  std::string unit;
  const auto read_unit = [&](const char* rest) {
    if (rest != end && *rest == ' ') ++rest;
    for (; rest != end; ++rest) unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*rest)));
  };

  // Without a unit or a fraction, every 64-bit number is exact; a double would round the large ones.
  uint64_t whole = 0;
  const auto as_whole = std::from_chars(text.data(), end, whole);
  if (as_whole.ec == std::errc() && as_whole.ptr == end) return whole;

  double number = 0;
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || !std::isfinite(number) || std::signbit(number)) return malformed;
  read_unit(parsed.ptr);
  const std::optional<double> scale = unit_bytes(unit);
  if (!scale) return malformed;
  const double bytes = std::floor(number * *scale);
  if (bytes >= 0x1p64)
    return Error{Code::kInvalidArgument, fmt::format("'{}' is more than 64 bits hold", text)};
  return static_cast<uint64_t>(bytes);
}

std::vector<std::string_view> split(std::string_view list, char separator) {
  std::vector<std::string_view> items;
  for (;;) {
    const size_t end = list.find(separator);
    items.push_back(list.substr(0, end));
    if (end == std::string_view::npos) return items;
    list.remove_prefix(end + 1);
  }
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Result<int64_t> parse_int(std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc::invalid_argument || parsed.ptr != end)
    return Error{Code::kInvalidArgument, fmt::format("'{}' is not a whole number", text)};
  if (parsed.ec == std::errc::result_out_of_range || value < min || value > max)
    return Error{Code::kInvalidArgument, fmt::format("{} is out of range, wanted {} to {}", text, min, max)};
  return value;
}

Result<double> parse_double(std::string_view text, double min, double max) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc::invalid_argument || parsed.ptr != end ||
      (parsed.ec == std::errc() && !std::isfinite(value)))
    return Error{Code::kInvalidArgument, fmt::format("'{}' is not a number", text)};
  if (parsed.ec == std::errc::result_out_of_range || value < min || value > max)
    return Error{Code::kInvalidArgument, fmt::format("{} is out of range, wanted {} to {}", text, min, max)};
  return value;
}

}  // namespace forebay
