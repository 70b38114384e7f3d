#include <algorithm>
#include <cmath>
#include <optional>

#include "tokenizer/jinja/arithmetic.h"
#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/repr.h"
#include "tokenizer/jinja/subscript.h"

namespace forebay::jinja {

namespace {

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;
  std::optional<int64_t> precision;
  char type = 0;
};

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

std::optional<int64_t> take_number(std::string_view& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  int64_t value = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    value = value * 10 + (text[0] - '0');
    if (value > INT32_MAX) fail("too many decimal digits in format string");
    text.remove_prefix(1);
  }
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

Spec parse_spec(std::string_view text) {
  Spec spec;
  if (!text.empty()) {
    const size_t fill_end = code_point_at(text, 0).end;
    if (fill_end < text.size() && is_align(text[fill_end])) {
      spec.fill = text.substr(0, fill_end);
      spec.align = text[fill_end];
      text.remove_prefix(fill_end + 1);
    } else if (is_align(text[0])) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  if (!text.empty() && (text[0] == '+' || text[0] == '-' || text[0] == ' ')) {
    spec.sign = text[0];
    text.remove_prefix(1);
  }
  spec.alternate = take(text, '#');
  if (!text.empty() && text[0] == '0') {
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
    text.remove_prefix(1);
  }
  spec.width = take_number(text).value_or(0);
  if (!text.empty() && (text[0] == ',' || text[0] == '_')) {
    spec.grouping = text[0];
    text.remove_prefix(1);
  }
  if (take(text, '.')) {
    spec.precision = take_number(text);
    if (!spec.precision) fail("format specifier missing precision");
  }
  if (text.size() > 1) fail("invalid format specifier");
  if (!text.empty()) spec.type = text[0];
  return spec;
}

std::string padded(Runtime& runtime, const Spec& spec, std::string_view body, char default_align) {
  const int64_t n_pad = spec.width - n_code_points(body);
  if (n_pad <= 0) return std::string(body);
  runtime.check_text(static_cast<uint64_t>(n_pad) + body.size(), spec.fill.size());
  const char align = spec.align != 0 ? spec.align : default_align;
  const int64_t n_left = align == '<' ? 0 : align == '^' ? n_pad / 2 : n_pad;
  std::string out;
  for (int64_t i = 0; i < n_left; ++i) out += spec.fill;
  out += body;
  for (int64_t i = n_left; i < n_pad; ++i) out += spec.fill;
  return out;
}

std::string grouped(std::string_view digits, char separator, size_t group) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out;
}

/// `whole` is the digits before the point, which grouping and zero padding concern.
std::string assembled(Runtime& runtime, const Spec& spec, bool negative, std::string_view prefix,
                      std::string whole, std::string_view rest) {
  std::string head(negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "");
  head += prefix;
  if (spec.grouping != 0) {
    const size_t group = spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X' ? 4 : 3;
    if (spec.align == '=' && spec.fill == "0") {
      // Zeros are grouped too: the fewest digits that fill the width along with their separators.
      runtime.check_text(static_cast<uint64_t>(spec.width));
      const int64_t n_wanted = spec.width - static_cast<int64_t>(head.size() + rest.size());
      size_t n_digits = n_wanted > 0 ? static_cast<size_t>(n_wanted) * group / (group + 1) + 1 : 1;
      while (static_cast<int64_t>(n_digits + (n_digits - 1) / group) < n_wanted) ++n_digits;
      while (n_digits > 1 && static_cast<int64_t>(n_digits - 1 + (n_digits - 2) / group) >= n_wanted)
        --n_digits;
      if (n_digits > whole.size()) whole.insert(0, n_digits - whole.size(), '0');
      return head + grouped(whole, spec.grouping, group) + std::string(rest);
    }
    whole = grouped(whole, spec.grouping, group);
  }
  whole += rest;
  if (spec.align != '=') return padded(runtime, spec, head + whole, '>');
  Spec inner = spec;
  inner.width = spec.width - static_cast<int64_t>(head.size());
  inner.align = '>';
  return head + padded(runtime, inner, whole, '>');
}

std::string format_integer(Runtime& runtime, Int value, const Spec& spec) {
  if (spec.precision) fail("precision not allowed in integer format specifier");
  switch (spec.type) {
    case 0:
    case 'd':
    case 'n':
      return assembled(runtime, spec, value < 0, "", int_digits(value, 10, false), "");
    case 'b':
      return assembled(runtime, spec, value < 0, spec.alternate ? "0b" : "", int_digits(value, 2, false), "");
    case 'o':
      return assembled(runtime, spec, value < 0, spec.alternate ? "0o" : "", int_digits(value, 8, false), "");
    case 'x':
      return assembled(runtime, spec, value < 0, spec.alternate ? "0x" : "", int_digits(value, 16, false),
                       "");
    case 'X':
      return assembled(runtime, spec, value < 0, spec.alternate ? "0X" : "", int_digits(value, 16, true), "");
    case 'c': {
      if (value < 0 || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) fail("%c arg not in range");
      std::string text;
      append_code_point(text, static_cast<uint32_t>(value));
      return padded(runtime, spec, text, '<');
    }
    default:
      fail("unknown format code '{}' for an integer", spec.type);
  }
}

std::string format_float(Runtime& runtime, double value, Spec spec) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  const double magnitude = std::abs(value);
  const int precision = static_cast<int>(std::min<int64_t>(spec.precision.value_or(6), INT32_MAX));
  std::string digits;
  switch (spec.type) {
    case 0:
      // Like repr; with a precision like g, but never without a decimal point.
      digits = float_repr(magnitude);
      if (spec.precision) {
        digits = float_digits(magnitude, 'g', std::max(precision, 1), spec.alternate);
        // An integer of as many digits as the precision allows: one more for ".0" means the exponent form.
        if (digits.find_first_of(".en") == std::string::npos) {
          if (static_cast<int>(digits.size()) < std::max(precision, 1)) {
            digits += ".0";
          } else {
            digits = float_digits(magnitude, 'e', std::max(precision, 1) - 1);
          }
        }
      }
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      digits = float_digits(magnitude, spec.type, precision, spec.alternate);
      break;
    case 'n':
      digits = float_digits(magnitude, 'g', precision, spec.alternate);
      break;
    case '%':
      digits = float_digits(magnitude * 100, 'f', precision, spec.alternate) + "%";
      break;
    default:
      fail("unknown format code '{}' for a float", spec.type);
  }
  size_t n_whole = digits.find_first_not_of("0123456789");
  if (n_whole == std::string::npos) n_whole = digits.size();
  if (n_whole == 0) spec.grouping = 0;  // inf, nan
  return assembled(runtime, spec, negative, "", digits.substr(0, n_whole), digits.substr(n_whole));
}

std::string format_text(Runtime& runtime, const Value& value, const Spec& spec) {
  if (spec.type != 0 && spec.type != 's') fail("unknown format code '{}' for a string", spec.type);
  if (spec.align == '=' && spec.fill != "0") fail("'=' alignment not allowed in string format specifier");
  if (spec.sign != '-') fail("sign not allowed in string format specifier");
  if (spec.alternate) fail("alternate form (#) not allowed in string format specifier");
  if (spec.grouping != 0) fail("cannot specify '{}' with 's'", spec.grouping);
  std::string_view text = value.text();
  if (spec.precision) text = text.substr(0, byte_offset(text, *spec.precision));
  Spec left = spec;
  if (left.align == '=') left.align = '<';
  return padded(runtime, left, text, '<');
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, bool markup, const Arguments& arguments)
      : runtime_(runtime), markup_(markup), arguments_(arguments) {}

  std::string run(std::string_view format, int depth) {
    if (depth > 2) fail("max string recursion exceeded");
    std::string out;
    for (size_t at = 0; at < format.size();) {
      const size_t brace = std::min(format.find_first_of("{}", at), format.size());
      out += format.substr(at, brace - at);
      runtime_.check_text(out.size());
      at = brace;
      if (at == format.size()) break;
      if (at + 1 < format.size() && format[at + 1] == format[at]) {
        out += format[at];
        at += 2;
        continue;
      }
      if (format[at] == '}') fail("single '}}' encountered in format string");
      const size_t close = matching_brace(format, at);
      out += field(format.substr(at + 1, close - at - 1), depth);
      runtime_.check_text(out.size());
      at = close + 1;
    }
    return out;
  }

 private:
  static size_t matching_brace(std::string_view format, size_t open) {
    int level = 0;
    for (size_t at = open; at < format.size(); ++at) {
      if (format[at] == '{') ++level;
      if (format[at] == '}' && --level == 0) return at;
    }
    fail("expected '}}' before end of string");
  }

  /// name[!conversion][:spec]
  std::string field(std::string_view text, int depth) {
    runtime_.spend();
    size_t name_end = 0;
    for (int level = 0; name_end < text.size(); ++name_end) {
      if (text[name_end] == '[') ++level;
      if (text[name_end] == ']') --level;
      if (level <= 0 && (text[name_end] == '!' || text[name_end] == ':')) break;
    }
    Value value = lookup(text.substr(0, name_end));
    std::string_view rest = text.substr(name_end);
    if (take(rest, '!')) {
      if (rest.empty()) fail("end of string while looking for conversion specifier");
      const char conversion = rest[0];
      rest.remove_prefix(1);
      if (conversion != 's' && conversion != 'r' && conversion != 'a')
        fail("unknown conversion specifier {}", quoted(std::string_view(&conversion, 1)));
      value = runtime_.string(conversion == 's' ? str_of(runtime_, value) : repr_of(runtime_, value));
      if (!rest.empty() && rest[0] != ':') fail("expected ':' after conversion specifier");
    }
    take(rest, ':');
    const std::string spec = rest.empty() ? std::string() : run(rest, depth + 1);
    if (!markup_) return formatted(runtime_, value, spec);
    if (value.is_string() && value.as<String>().markup) {
      if (!spec.empty()) fail("unsupported format specification for Markup");
      return std::string(value.text());
    }
    return html_escaped(formatted(runtime_, value, spec));
  }

  /// first(.attribute | [item])*
  Value lookup(std::string_view path) {
    const size_t first_end = std::min(path.find_first_of(".["), path.size());
    Value value = first(path.substr(0, first_end));
    path.remove_prefix(first_end);
    while (!path.empty()) {
      if (take(path, '.')) {
        const size_t end = std::min(path.find_first_of(".["), path.size());
        if (end == 0) fail("empty attribute in format string");
        value = attribute_of(runtime_, value, path.substr(0, end));
        path.remove_prefix(end);
      } else if (take(path, '[')) {
        const size_t end = path.find(']');
        if (end == std::string_view::npos || end == 0) fail("missing ']' in format string");
        std::string_view key = path.substr(0, end);
        const std::string_view name = key;
        const std::optional<int64_t> index = take_number(key);
        value = item_of(runtime_, value,
                        index && key.empty() ? Value::integer(*index) : runtime_.string(std::string(name)));
        path.remove_prefix(end + 1);
      } else {
        fail("only '.' or '[' may follow ']' in format field specifier");
      }
      if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
    }
    return value;
  }

  Value first(std::string_view name) {
    std::string_view digits = name;
    std::optional<int64_t> index = take_number(digits);
    if (name.empty()) {
      if (manual_) fail("cannot switch from manual field specification to automatic field numbering");
      automatic_ = true;
      index = next_++;
    } else if (index && digits.empty()) {
      if (automatic_) fail("cannot switch from automatic field numbering to manual field specification");
      manual_ = true;
    } else {
      for (const auto& [key, value] : arguments_.named)
        if (key == name) return value;
      fail("no value for format field {}", quoted(name));
    }
    if (*index >= static_cast<int64_t>(arguments_.positional.size()))
      fail("replacement index {} out of range for positional args", *index);
    return arguments_.positional[static_cast<size_t>(*index)];
  }

  Runtime& runtime_;
  const bool markup_;
  const Arguments& arguments_;
  int64_t next_ = 0;
  bool automatic_ = false;
  bool manual_ = false;
};

}  // namespace

std::string formatted(Runtime& runtime, const Value& value, std::string_view spec_text) {
  if (spec_text.empty()) return str_of(runtime, value);
  const Spec spec = parse_spec(spec_text);
  switch (value.kind()) {
    case Kind::kString:
      return format_text(runtime, value, spec);
    case Kind::kFloat:
      return format_float(runtime, value.to_double(), spec);
    case Kind::kBool:
    case Kind::kInt:
      switch (spec.type) {
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
        case '%':
          return format_float(runtime, value.to_double(), spec);
        default:
          return format_integer(runtime, value.to_int(), spec);
      }
    default:
      fail("unsupported format string passed to {}.__format__", type_name(value));
  }
}

Value brace_format(Runtime& runtime, const Value& format, const Arguments& arguments) {
  runtime.spend_bytes(format.text().size());
  const bool markup = format.as<String>().markup;
  return runtime.string(BraceFormatter(runtime, markup, arguments).run(format.text(), 1), markup);
}

}  // namespace forebay::jinja
