#include <cmath>
#include <optional>

#include "tokenizer/jinja/arithmetic.h"
#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/repr.h"

namespace forebay::jinja {

namespace {

struct Conversion {
  bool minus = false, plus = false, space = false, alternate = false, zero = false;
  int64_t width = 0;
  std::optional<int64_t> precision;
  char type = 0;
};

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Value& format, const Value& values)
      : runtime_(runtime), format_(format.text()), markup_(format.as<String>().markup), values_(values) {}

  std::string run() {
    while (at_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', at_), format_.size());
      put(format_.substr(at_, percent - at_));
      at_ = percent;
      if (at_ < format_.size()) convert();
    }
    const bool is_container = values_.is(Kind::kDict) || values_.is(Kind::kList) ||
                              values_.is(Kind::kRange) || values_.is_undefined();
    const bool unused =
        values_.is(Kind::kTuple) ? n_used_ < values_.as<Tuple>().items.size() : n_used_ == 0 && !is_container;
    if (unused) fail("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  void put(std::string_view text) {
    runtime_.check_text(out_.size() + text.size());
    out_ += text;
  }

  char peek() const {
    if (at_ >= format_.size()) fail("incomplete format");
    return format_[at_];
  }

  Value next_value() {
    if (values_.is(Kind::kTuple)) {
      const std::vector<Value>& items = values_.as<Tuple>().items;
      if (n_used_ >= items.size()) fail("not enough arguments for format string");
      return items[n_used_++];
    }
    if (n_used_ != 0) fail("not enough arguments for format string");
    ++n_used_;
    return values_;
  }

  Value named_value() {
    if (!values_.is(Kind::kDict)) fail("format requires a mapping");
    const size_t close = format_.find(')', at_);
    if (close == std::string_view::npos) fail("incomplete format key");
    const std::string_view key = format_.substr(at_, close - at_);
    at_ = close + 1;
    const Value* value = values_.as<Dict>().find(key);
    if (value == nullptr) fail("no value for format key {}", quoted(key));
    return *value;
  }

  int64_t number() {
    if (peek() == '*') {
      ++at_;
      return size_or(next_value(), 0, "* in a format");
    }
    int64_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + (peek() - '0');
      if (value > INT32_MAX) fail("width too big in format");
    }
    return value;
  }

  void convert() {
    ++at_;  // the percent sign
    Conversion conversion;
    std::optional<Value> named;
    if (peek() == '(') {
      ++at_;
      named = named_value();
    }
    for (bool flags = true; flags;) {
      switch (peek()) {
        case '-':
          conversion.minus = true;
          break;
        case '+':
          conversion.plus = true;
          break;
        case ' ':
          conversion.space = true;
          break;
        case '#':
          conversion.alternate = true;
          break;
        case '0':
          conversion.zero = true;
          break;
        default:
          flags = false;
          continue;
      }
      ++at_;
    }
    conversion.width = number();
    if (conversion.width < 0) {
      conversion.minus = true;
      conversion.width = -conversion.width;
    }
    if (peek() == '.') {
      ++at_;
      conversion.precision = std::max<int64_t>(number(), 0);
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    conversion.type = peek();
    ++at_;
    if (conversion.type == '%') return put("%");
    put_converted(conversion, named ? *named : next_value());
  }

  void put_converted(const Conversion& conversion, const Value& value) {
    switch (conversion.type) {
      case 's':
        return put_text(conversion, str_of(runtime_, markup_ ? escaped(runtime_, value) : value));
      case 'r':
      case 'a': {
        const std::string text = repr_of(runtime_, value);
        return put_text(conversion, markup_ ? html_escaped(text) : text);
      }
      case 'c':
        return put_text(conversion, character(value));
      case 'd':
      case 'i':
      case 'u':
        return put_integer(conversion, value, 10, "");
      case 'o':
        return put_integer(conversion, value, 8, "0o");
      case 'x':
        return put_integer(conversion, value, 16, "0x");
      case 'X':
        return put_integer(conversion, value, 16, "0X");
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return put_float(conversion, value);
      default:
        fail("unsupported format character {}", quoted(std::string_view(&conversion.type, 1)));
    }
  }

  std::string character(const Value& value) {
    if (value.is_string() && value.as<String>().length == 1) return std::string(value.text());
    if (!value.is_integral()) fail("%c requires int or char");
    const Int code_point = value.to_int();
    if (code_point < 0 || code_point > 0x10ffff || (code_point >= 0xd800 && code_point < 0xe000))
      fail("%c of {}, which is no character", code_point);
    std::string text;
    append_code_point(text, static_cast<uint32_t>(code_point));
    return text;
  }

  void put_text(const Conversion& conversion, std::string text) {
    if (conversion.precision) text.resize(byte_offset(text, *conversion.precision));
    const int64_t n_pad = conversion.width - n_code_points(text);
    pad(conversion.minus ? 0 : n_pad);
    put(text);
    pad(conversion.minus ? n_pad : 0);
  }

  void pad(int64_t n, char fill = ' ') {
    if (n <= 0) return;
    runtime_.check_text(out_.size() + static_cast<uint64_t>(n));
    out_.append(static_cast<size_t>(n), fill);
  }

  void put_integer(const Conversion& conversion, const Value& value, int base, std::string_view prefix) {
    if (!value.is_integral() && !(base == 10 && value.is(Kind::kFloat)))
      fail("%{} format: a number is required, not {}", conversion.type, type_name(value));
    const Int number = value.is_integral() ? value.to_int() : int_of(value.to_double());
    std::string digits = int_digits(number, base, conversion.type == 'X');
    if (conversion.precision && *conversion.precision > static_cast<int64_t>(digits.size())) {
      runtime_.check_text(static_cast<uint64_t>(*conversion.precision));
      digits.insert(0, static_cast<size_t>(*conversion.precision) - digits.size(), '0');
    }
    put_number(conversion, number < 0, conversion.alternate ? prefix : "", digits);
  }

  void put_float(const Conversion& conversion, const Value& value) {
    if (!value.is_number()) fail("must be real number, not {}", type_name(value));
    const double number = value.to_double();
    const int precision = static_cast<int>(std::min<int64_t>(conversion.precision.value_or(6), INT32_MAX));
    std::string digits = float_digits(std::abs(number), conversion.type, precision, conversion.alternate);
    put_number(conversion, std::signbit(number) && !std::isnan(number), "", digits);
  }

  void put_number(const Conversion& conversion, bool negative, std::string_view prefix,
                  std::string_view digits) {
    const std::string_view sign = negative ? "-" : conversion.plus ? "+" : conversion.space ? " " : "";
    const int64_t n_pad =
        conversion.width - static_cast<int64_t>(sign.size() + prefix.size() + digits.size());
    if (!conversion.minus && !conversion.zero) pad(n_pad);
    put(sign);
    put(prefix);
    if (!conversion.minus && conversion.zero) pad(n_pad, '0');
    put(digits);
    if (conversion.minus) pad(n_pad);
  }

  Runtime& runtime_;
  const std::string_view format_;
  const bool markup_;
  const Value& values_;
  std::string out_;
  size_t at_ = 0;
  size_t n_used_ = 0;
};

}  // namespace

Value percent_format(Runtime& runtime, const Value& format, const Value& values) {
  runtime.spend_bytes(format.text().size());
  return runtime.string(PercentFormatter(runtime, format, values).run(), format.as<String>().markup);
}

}  // namespace forebay::jinja
