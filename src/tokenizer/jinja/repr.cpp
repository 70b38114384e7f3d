#include "tokenizer/jinja/repr.h"

#include <charconv>
#include <cmath>

namespace forebay::jinja {

namespace {

/// Appends to one text, which may not outgrow the limit.
class Writer {
 public:
  explicit Writer(Runtime& runtime) : runtime_(runtime) {}

  std::string take() { return std::move(out_); }

  void write(const Value& value) {
    runtime_.spend();
    switch (value.kind()) {
      case Kind::kMissing:
      case Kind::kUndefined:
        return put("Undefined");
      case Kind::kNone:
        return put("None");
      case Kind::kBool:
        return put(value.to_int() != 0 ? "True" : "False");
      case Kind::kInt:
        return put(fmt::format("{}", value.to_int()));
      case Kind::kFloat:
        return put(float_repr(value.to_double()));
      case Kind::kString:
        if (value.as<String>().markup) return put("Markup(" + quoted(value.text()) + ")");
        return put(quoted(value.text()));
      case Kind::kList:
        return write_items(value.as<List>().items, "[", "]");
      case Kind::kTuple: {
        const std::vector<Value>& items = value.as<Tuple>().items;
        return write_items(items, "(", items.size() == 1 ? ",)" : ")");
      }
      case Kind::kDict:
        return write_dict(value.as<Dict>());
      case Kind::kView:
        return write_view(value.as<View>());
      case Kind::kRange: {
        const Range& range = value.as<Range>();
        put(fmt::format("range({}, {}", range.start, range.stop));
        return put(range.step == 1 ? ")" : fmt::format(", {})", range.step));
      }
      case Kind::kIterator:
        return put("<generator object>");
      case Kind::kOpaque:
        return put(value.as<Opaque>().repr(runtime_));
    }
  }

 private:
  void put(std::string_view text) {
    runtime_.check_text(out_.size() + text.size());
    out_ += text;
  }

  void write_items(const std::vector<Value>& items, std::string_view open, std::string_view close) {
    const Nesting nesting(runtime_);
    put(open);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) put(", ");
      write(items[i]);
    }
    put(close);
  }

  void write_dict(const Dict& dict) {
    const Nesting nesting(runtime_);
    put("{");
    for (size_t i = 0; i < dict.size(); ++i) {
      if (i != 0) put(", ");
      write(dict.entries()[i].key);
      put(": ");
      write(dict.entries()[i].value);
    }
    put("}");
  }

  void write_view(const View& view) {
    const Nesting nesting(runtime_);
    std::vector<Value> items;
    for (const Dict::Entry& entry : view.dict->entries())
      items.push_back(view.part == View::Part::kItems  ? runtime_.tuple({entry.key, entry.value})
                      : view.part == View::Part::kKeys ? entry.key
                                                       : entry.value);
    put(view.part == View::Part::kItems  ? "dict_items("
        : view.part == View::Part::kKeys ? "dict_keys("
                                         : "dict_values(");
    write_items(items, "[", "])");
  }

  Runtime& runtime_;
  std::string out_;
};

}  // namespace

std::string str_of(Runtime& runtime, const Value& value) {
  if (value.is_string()) return std::string(value.text());
  if (value.is_undefined()) return {};
  return repr_of(runtime, value);
}

std::string repr_of(Runtime& runtime, const Value& value) {
  Writer writer(runtime);
  writer.write(value);
  return writer.take();
}

Value soft_str(Runtime& runtime, const Value& value) {
  return value.is_string() ? value : runtime.string(str_of(runtime, value));
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const double magnitude = std::abs(value);
  const bool exponent = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(buffer, end);
  if (!exponent && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string quoted(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const CodePoint c = code_point_at(text, at);
    at = c.end;
    if (c.value == static_cast<uint32_t>(quote) || c.value == '\\') {
      out += '\\';
      out += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (is_printable(c.value)) {
      out += text.substr(begin, at - begin);
    } else if (c.value < 0x100) {
      out += fmt::format("\\x{:02x}", c.value);
    } else if (c.value < 0x10000) {
      out += fmt::format("\\u{:04x}", c.value);
    } else {
      out += fmt::format("\\U{:08x}", c.value);
    }
  }
  return out += quote;
}

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Value escaped(Runtime& runtime, const Value& value) {
  if (value.is_string() && value.as<String>().markup) return value;
  return runtime.string(html_escaped(str_of(runtime, value)), true);
}

}  // namespace forebay::jinja
