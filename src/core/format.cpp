#include "core/format.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace forebay {
namespace {

/// Three significant digits of value in [0, 1024).
std::string three_digits(double value) {
  // The limits are where rounding would print a fourth digit.
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string scaled(uint64_t number, double step, std::span<const std::string_view> units) {
  if (number < static_cast<uint64_t>(step))
    return units[0].empty() ? fmt::format("{}", number) : fmt::format("{} {}", number, units[0]);
  double value = static_cast<double>(number);
  size_t unit = 0;
  // The next unit a little early: 1023.7 KiB is better read as 1.00 MiB than as 1024 KiB.
  while (value >= step - 0.5 && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return fmt::format("{} {}", three_digits(value), units[unit]);
}

}  // namespace

std::string human_bytes(uint64_t bytes) {
  static constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return scaled(bytes, 1024, kUnits);
}

std::string human_count(uint64_t count) {
  static constexpr std::string_view kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  return scaled(count, 1000, kUnits);
}

std::string grouped_digits(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string human_duration(std::chrono::duration<double> duration) {
  const double seconds = duration.count();
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<uint64_t>(std::min(seconds + 0.5, 1e15));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace forebay
