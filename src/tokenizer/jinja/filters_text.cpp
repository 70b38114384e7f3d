#include <algorithm>

#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/json.h"
#include "tokenizer/jinja/repr.h"
#include "tokenizer/jinja/text.h"
#include "tokenizer/jinja/wrap.h"

namespace forebay::jinja {

namespace {

const Value& checked_string(const Value& value, std::string_view filter) {
  if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
  if (!value.is_string()) fail("{} of '{}', expected str", filter, type_name(value));
  return value;
}

template <std::string (*change)(std::string_view)>
Value recased(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("case filter", arguments, {}, 0);
  const Value text = soft_str(runtime, value);
  runtime.spend_bytes(4 * text.text().size());
  return like(runtime, text, change(text.text()));
}

/// Words begin after white space and - ( { [ <.
std::string titled(std::string_view text) {
  const auto separates = [](uint32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const CodePoint first = code_point_at(text, begin);
    if (separates(first.value)) {
      out += text.substr(begin, first.end - begin);
      begin = first.end;
      continue;
    }
    size_t end = first.end;
    while (end < text.size()) {
      const CodePoint c = code_point_at(text, end);
      if (separates(c.value)) break;
      end = c.end;
    }
    out += to_upper(text.substr(begin, first.end - begin));
    out += to_lower(text.substr(first.end, end - first.end));
    begin = end;
  }
  return out;
}

Value center(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("center", arguments, {"width"}, 0);
  const Value text = soft_str(runtime, value);
  return like(runtime, text,
              justified(runtime, text.text(), size_or(bound[0], 80, "width"), " ", Side::kBoth));
}

Value escape(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("escape", arguments, {}, 0);
  return escaped(runtime, value);
}

Value forceescape(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("forceescape", arguments, {}, 0);
  return runtime.string(html_escaped(str_of(runtime, value)), true);
}

Value safe(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("safe", arguments, {}, 0);
  if (value.is_string() && value.as<String>().markup) return value;
  return runtime.string(str_of(runtime, value), true);
}

Value string(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("string", arguments, {}, 0);
  return soft_str(runtime, value);
}

Value format(Runtime& runtime, const Value& value, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    fail("format cannot handle positional and keyword arguments at the same time");
  if (arguments.named.empty())
    return percent_format(runtime, soft_str(runtime, value), runtime.tuple(arguments.positional));
  const Ref<Dict> named = runtime.dict();
  for (const auto& [name, argument] : arguments.named) named->set(runtime, runtime.string(name), argument);
  return percent_format(runtime, soft_str(runtime, value), named);
}

Value indent(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("indent", arguments, {"width", "first", "blank"}, 0);
  checked_string(value, "indent");
  std::string indentation;
  if (bound[0].is_string()) {
    indentation = bound[0].text();
  } else {
    const int64_t width = size_or(bound[0], 4, "width");
    if (width > 0) {
      runtime.check_text(static_cast<uint64_t>(width));
      indentation.assign(static_cast<size_t>(width), ' ');
    }
  }
  const bool blank = bool_or(bound[2], false);
  // Splitting a line end off the end gives no empty line, so one is added.
  const std::string text = std::string(value.text()) + "\n";
  std::string out = bool_or(bound[1], false) ? indentation : std::string();
  bool is_first = true;
  for (const std::string_view line : split_lines(text, false)) {
    runtime.spend();
    if (!is_first) out += "\n";
    if (!is_first && (blank || !line.empty())) {
      runtime.check_text(out.size() + indentation.size());
      out += indentation;
    }
    out += line;
    is_first = false;
  }
  return like(runtime, value, std::move(out));
}

Value replace(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("replace", arguments, {"old", "new", "count"}, 2);
  return runtime.string(replaced_within(runtime, str_of(runtime, value), str_of(runtime, bound[0]),
                                        str_of(runtime, bound[1]), size_or(bound[2], -1, "count")));
}

Value tojson(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound =
      bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.ascii_only = bool_or(bound[0], false);
  if (bound[1].is_string()) {
    style.indent = std::string(bound[1].text());
  } else if (!bound[1].is_absent()) {
    const int64_t width = std::max<int64_t>(size_or(bound[1], 0, "indent"), 0);
    runtime.check_text(static_cast<uint64_t>(width));
    style.indent = std::string(static_cast<size_t>(width), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (!bound[2].is_absent()) {
    const std::vector<Value> separators = collect(runtime, bound[2]);
    if (separators.size() != 2) fail("tojson: separators must be two strings");
    style.item_separator = text_or(runtime, separators[0], "", "separator");
    style.key_separator = text_or(runtime, separators[1], "", "separator");
  }
  style.sort_keys = bool_or(bound[3], false);
  return runtime.string(to_json(runtime, value, style));
}

Value trim(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("trim", arguments, {"chars"}, 0);
  const Value text = soft_str(runtime, value);
  return like(runtime, text, std::string(stripped(text.text(), bound[0], Side::kBoth)));
}

Value truncate(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("truncate", arguments, {"length", "killwords", "end", "leeway"}, 0);
  const int64_t length = size_or(bound[0], 255, "length");
  const std::string end = text_or(runtime, bound[2], "...", "end");
  const int64_t n_end = n_code_points(end);
  const int64_t leeway = size_or(bound[3], 5, "leeway");
  if (length < n_end) fail("truncate: expected length >= {}, got {}", n_end, length);
  if (leeway < 0) fail("truncate: expected leeway >= 0, got {}", leeway);
  // What is short is returned, text or not.
  if (const std::optional<Int> n = length_of(value); n && *n <= length + leeway) return value;
  checked_string(value, "truncate");
  std::string_view kept = value.text().substr(0, byte_offset(value.text(), length - n_end));
  if (!bool_or(bound[1], false)) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return like(runtime, value, std::string(kept) + end);
}

std::string url_quoted(std::string_view text, bool for_query) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !for_query);
    if (plain) {
      out += c;
    } else if (c == ' ' && for_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Value urlencode(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("urlencode", arguments, {}, 0);
  if (value.is_string() || !is_iterable(value))
    return runtime.string(url_quoted(str_of(runtime, value), false));
  const Value pairs = value.is(Kind::kDict)
                          ? Value(runtime.heap().make<View>(Ref(&value.as<Dict>()), View::Part::kItems))
                          : value;
  std::string out;
  const Ref<Iterator> iterator = iterate(runtime, pairs);
  for (Value item; iterator->next(runtime, item);) {
    runtime.spend();
    const std::vector<Value> pair = collect(runtime, item);
    if (pair.size() != 2) fail("urlencode: expected pairs, got {} items", pair.size());
    if (!out.empty()) out += '&';
    out += url_quoted(str_of(runtime, pair[0]), true) + "=" + url_quoted(str_of(runtime, pair[1]), true);
    runtime.check_text(out.size());
  }
  return runtime.string(std::move(out));
}

Value wordcount(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("wordcount", arguments, {}, 0);
  const std::string text = str_of(runtime, value);
  runtime.spend_bytes(text.size());
  Int n_words = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    at = c.end;
    n_words += is_word(c.value) && !in_word ? 1 : 0;
    in_word = is_word(c.value);
  }
  return Value::integer(n_words);
}

Value wordwrap(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound =
      bind("wordwrap", arguments, {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0);
  checked_string(value, "wordwrap");
  WrapStyle style;
  style.width = size_or(bound[0], 79, "width");
  style.break_long_words = bool_or(bound[1], true);
  style.break_on_hyphens = bool_or(bound[3], true);
  const std::string separator = text_or(runtime, bound[2], "\n", "wrapstring");
  std::string out;
  bool is_first_line = true;
  for (const std::string_view paragraph : split_lines(value.text(), false)) {
    const std::vector<std::string> lines = wrapped(runtime, paragraph, style);
    if (!is_first_line) out += separator;
    is_first_line = false;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i != 0) out += separator;
      runtime.check_text(out.size() + lines[i].size());
      out += lines[i];
    }
  }
  return runtime.string(std::move(out));
}

Value xmlattr(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("xmlattr", arguments, {"autospace"}, 0);
  if (!value.is(Kind::kDict)) fail("xmlattr of '{}', expected dict", type_name(value));
  std::string out;
  for (const Dict::Entry& entry : value.as<Dict>().entries()) {
    runtime.spend();
    if (entry.value.is_none() || entry.value.is_undefined()) continue;
    const std::string_view key = checked_string(entry.key, "xmlattr").text();
    if (key.find_first_of(" \t\n\v\f\r/>=") != std::string_view::npos)
      fail("invalid character in attribute name: {}", quoted(key));
    if (!out.empty()) out += ' ';
    out += fmt::format("{}=\"{}\"", escaped(runtime, entry.key).text(), escaped(runtime, entry.value).text());
    runtime.check_text(out.size());
  }
  if (bool_or(bound[0], true) && !out.empty()) out.insert(0, 1, ' ');
  return runtime.string(std::move(out));
}

constexpr Filter kFilters[] = {
    {"capitalize", recased<capitalized>},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"forceescape", forceescape},
    {"format", format},
    {"indent", indent},
    {"lower", recased<to_lower>},
    {"replace", replace},
    {"safe", safe},
    {"string", string},
    {"title", recased<titled>},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", recased<to_upper>},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
    {"wordwrap", wordwrap},
    {"xmlattr", xmlattr},
};

}  // namespace

std::span<const Filter> text_filters() {
  return kFilters;
}

}  // namespace forebay::jinja
