#include <algorithm>
#include <cstdio>

#include "tokenizer/jinja/format.h"

namespace forebay::jinja {

std::string float_digits(double value, char conversion, int precision, bool alternate) {
  if (precision > kMaxPrecision) fail("precision {} is over {}", precision, kMaxPrecision);
  const char format[] = {'%', '.', '*', conversion, '\0'};
  const char alternate_format[] = {'%', '#', '.', '*', conversion, '\0'};
  // 309 digits before the point, the point, the sign.
  std::string text(static_cast<size_t>(precision) + 320, '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int n =
      std::snprintf(text.data(), text.size(), alternate ? alternate_format : format, precision, value);
#pragma GCC diagnostic pop
  text.resize(static_cast<size_t>(n));
  return text;
}

std::string int_digits(Int value, int base, bool upper_case) {
  const char* symbols = upper_case ? "0123456789ABCDEF" : "0123456789abcdef";
  auto magnitude = static_cast<unsigned __int128>(value);
  if (value < 0) magnitude = -magnitude;
  std::string digits;
  do {
    digits += symbols[static_cast<int>(magnitude % static_cast<unsigned>(base))];
    magnitude /= static_cast<unsigned>(base);
  } while (magnitude != 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace forebay::jinja
