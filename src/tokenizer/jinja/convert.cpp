#include "tokenizer/jinja/convert.h"

#include <charconv>
#include <limits>
#include <string>

#include "tokenizer/jinja/literal.h"
#include "tokenizer/jinja/unicode.h"

namespace forebay::jinja {

namespace {

bool take_sign(std::string_view& text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  return negative;
}

/// Without underscores; absent when one does not stand between digits.
std::optional<std::string> without_underscores(std::string_view text) {
  const auto is_digit_at = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1)) {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

std::optional<Int> parse_int(std::string_view text, int base) {
  text = strip_left(strip_right(text));
  const bool negative = take_sign(text);
  int prefix_base = 0;
  if (text.size() > 2 && text[0] == '0') {
    const char c = text[1];
    prefix_base = c == 'x' || c == 'X' ? 16 : c == 'o' || c == 'O' ? 8 : c == 'b' || c == 'B' ? 2 : 0;
  }
  if (prefix_base != 0 && (base == 0 || base == prefix_base)) {
    text.remove_prefix(text[2] == '_' ? 3 : 2);
    base = prefix_base;
  } else if (base == 0) {
    // Without a prefix, no leading zeros.
    if (text.starts_with('0') && text.find_first_not_of("0_") != std::string_view::npos) return std::nullopt;
    base = 10;
  }
  if (base < 2 || base > 36) return std::nullopt;
  const std::optional<Int> magnitude = parse_digits(text, base);
  if (!magnitude) return std::nullopt;
  return negative ? -*magnitude : *magnitude;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip_left(strip_right(text));
  const bool negative = take_sign(text);
  const std::string lower = to_lower(text.substr(0, 16));
  double value = 0;
  if (text.size() == lower.size() && (lower == "inf" || lower == "infinity")) {
    value = std::numeric_limits<double>::infinity();
  } else if (text.size() == lower.size() && lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    const std::optional<std::string> digits = without_underscores(text);
    if (!digits || digits->empty() || !((*digits)[0] == '.' || ((*digits)[0] >= '0' && (*digits)[0] <= '9')))
      return std::nullopt;
    const char* end = digits->data() + digits->size();
    const auto [read, error] = std::from_chars(digits->data(), end, value);
    if (read != end || error == std::errc::invalid_argument) return std::nullopt;
    // from_chars says only that it does not fit.
    if (error == std::errc::result_out_of_range) value = std::strtod(digits->c_str(), nullptr);
  }
  return negative ? -value : value;
}

}  // namespace forebay::jinja
