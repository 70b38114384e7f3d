#include <algorithm>
#include <array>

#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/methods.h"
#include "tokenizer/jinja/repr.h"
#include "tokenizer/jinja/search.h"
#include "tokenizer/jinja/text.h"

namespace forebay::jinja {

namespace {

std::string_view string_argument(const Value& value, std::string_view method) {
  if (value.is_undefined()) fail("{}", value.as<Undefined>().message);
  if (!value.is_string()) fail("{}: expected str, got '{}'", method, type_name(value));
  return value.text();
}

/// self[start:end] of the methods that search there.
struct Window {
  std::string_view text;
  int64_t start = 0;  // in code points
  bool valid = true;  // false when it starts behind its end: nothing is found in it, not even ""
};

Window window(Runtime& runtime, const Value& self, const Value& start_value, const Value& end_value) {
  const String& string = self.as<String>();
  runtime.spend_bytes(string.text.size());
  if (start_value.is_absent() && end_value.is_absent()) return {string.text};
  int64_t start = size_or(start_value, 0, "start"), end = size_or(end_value, string.length, "end");
  if (end < 0) end = std::max<int64_t>(end + string.length, 0);
  end = std::min(end, string.length);
  if (start < 0) start = std::max<int64_t>(start + string.length, 0);
  if (start > end) return {{}, start, false};
  const size_t begin_byte = byte_offset(string.text, start);
  const std::string_view rest = std::string_view(string.text).substr(begin_byte);
  return {rest.substr(0, byte_offset(rest, end - start)), start};
}

// ---- searching ----

int64_t find_in(Runtime& runtime, const Value& self, Arguments& arguments, std::string_view name, bool last) {
  const std::vector<Value> bound = bind(name, arguments, {"", "", ""}, 1);
  const std::string_view wanted = string_argument(bound[0], name);
  const Window in = window(runtime, self, bound[1], bound[2]);
  if (!in.valid) return -1;
  const size_t found = last ? find_last_text(in.text, wanted) : find_text(in.text, wanted);
  if (found == std::string_view::npos) return -1;
  return in.start + n_code_points(in.text.substr(0, found));
}

Value find(Runtime& runtime, const Value& self, Arguments& arguments) {
  return Value::integer(find_in(runtime, self, arguments, "find", false));
}

Value rfind(Runtime& runtime, const Value& self, Arguments& arguments) {
  return Value::integer(find_in(runtime, self, arguments, "rfind", true));
}

Value index(Runtime& runtime, const Value& self, Arguments& arguments) {
  const int64_t found = find_in(runtime, self, arguments, "index", false);
  if (found < 0) fail("substring not found");
  return Value::integer(found);
}

Value rindex(Runtime& runtime, const Value& self, Arguments& arguments) {
  const int64_t found = find_in(runtime, self, arguments, "rindex", true);
  if (found < 0) fail("substring not found");
  return Value::integer(found);
}

Value count(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("count", arguments, {"", "", ""}, 1);
  const std::string_view wanted = string_argument(bound[0], "count");
  const Window in = window(runtime, self, bound[1], bound[2]);
  return Value::integer(in.valid ? static_cast<Int>(count_text(in.text, wanted)) : 0);
}

/// startswith and endswith take one string or a tuple of them.
template <typename F>
Value matches_any(Runtime& runtime, const Value& self, Arguments& arguments, std::string_view name,
                  F matches) {
  const std::vector<Value> bound = bind(name, arguments, {"", "", ""}, 1);
  const Window in = window(runtime, self, bound[1], bound[2]);
  if (!bound[0].is(Kind::kTuple))
    return Value::boolean(matches(in.text, string_argument(bound[0], name)) && in.valid);
  for (const Value& option : bound[0].as<Tuple>().items)
    if (matches(in.text, string_argument(option, name)) && in.valid) return Value::boolean(true);
  return Value::boolean(false);
}

Value startswith(Runtime& runtime, const Value& self, Arguments& arguments) {
  return matches_any(runtime, self, arguments, "startswith",
                     [](std::string_view text, std::string_view affix) { return text.starts_with(affix); });
}

Value endswith(Runtime& runtime, const Value& self, Arguments& arguments) {
  return matches_any(runtime, self, arguments, "endswith",
                     [](std::string_view text, std::string_view affix) { return text.ends_with(affix); });
}

// ---- cutting ----

Value split_from(Runtime& runtime, const Value& self, Arguments& arguments, std::string_view name,
                 Side from) {
  const std::vector<Value> bound = bind(name, arguments, {"sep", "maxsplit"}, 0);
  const int64_t max_splits = size_or(bound[1], -1, "maxsplit");
  runtime.spend_bytes(self.text().size());
  if (bound[0].is_absent()) return list_of(runtime, self, split_spaces(self.text(), max_splits, from));
  const std::string_view separator = string_argument(bound[0], name);
  if (separator.empty()) fail("empty separator");
  return list_of(runtime, self, split_text(self.text(), separator, max_splits, from));
}

Value split(Runtime& runtime, const Value& self, Arguments& arguments) {
  return split_from(runtime, self, arguments, "split", Side::kLeft);
}

Value rsplit(Runtime& runtime, const Value& self, Arguments& arguments) {
  return split_from(runtime, self, arguments, "rsplit", Side::kRight);
}

Value splitlines(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("splitlines", arguments, {"keepends"}, 0);
  return list_of(runtime, self, split_lines(self.text(), bool_or(bound[0], false)));
}

Value partition_at(Runtime& runtime, const Value& self, Arguments& arguments, std::string_view name,
                   bool last) {
  const std::vector<Value> bound = bind(name, arguments, {""}, 1);
  const std::string_view separator = string_argument(bound[0], name);
  if (separator.empty()) fail("empty separator");
  const std::string_view text = self.text();
  runtime.spend_bytes(text.size());
  const size_t found = last ? find_last_text(text, separator) : find_text(text, separator);
  std::array<std::string_view, 3> parts;
  if (found != std::string_view::npos) {
    parts = {text.substr(0, found), separator, text.substr(found + separator.size())};
  } else {
    parts[last ? 2 : 0] = text;
  }
  std::vector<Value> items;
  for (const std::string_view part : parts) items.push_back(like(runtime, self, std::string(part)));
  return runtime.tuple(std::move(items));
}

Value partition(Runtime& runtime, const Value& self, Arguments& arguments) {
  return partition_at(runtime, self, arguments, "partition", false);
}

Value rpartition(Runtime& runtime, const Value& self, Arguments& arguments) {
  return partition_at(runtime, self, arguments, "rpartition", true);
}

Value strip_side(Runtime& runtime, const Value& self, Arguments& arguments, std::string_view name,
                 Side side) {
  const std::vector<Value> bound = bind(name, arguments, {""}, 0);
  if (bound[0].is_undefined()) fail("{}", bound[0].as<Undefined>().message);
  return like(runtime, self, std::string(stripped(self.text(), bound[0], side)));
}

Value strip(Runtime& runtime, const Value& self, Arguments& arguments) {
  return strip_side(runtime, self, arguments, "strip", Side::kBoth);
}

Value lstrip(Runtime& runtime, const Value& self, Arguments& arguments) {
  return strip_side(runtime, self, arguments, "lstrip", Side::kLeft);
}

Value rstrip(Runtime& runtime, const Value& self, Arguments& arguments) {
  return strip_side(runtime, self, arguments, "rstrip", Side::kRight);
}

Value removeprefix(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("removeprefix", arguments, {""}, 1);
  const std::string_view affix = string_argument(bound[0], "removeprefix");
  return like(runtime, self,
              std::string(self.text().substr(self.text().starts_with(affix) ? affix.size() : 0)));
}

Value removesuffix(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("removesuffix", arguments, {""}, 1);
  const std::string_view affix = string_argument(bound[0], "removesuffix");
  const size_t n_removed = self.text().ends_with(affix) ? affix.size() : 0;
  return like(runtime, self, std::string(self.text().substr(0, self.text().size() - n_removed)));
}

// ---- making ----

Value replace(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("replace", arguments, {"", "", ""}, 2);
  const std::string_view old = string_argument(bound[0], "replace");
  string_argument(bound[1], "replace");
  const Value by = self.as<String>().markup ? escaped(runtime, bound[1]) : bound[1];
  const int64_t max_count = size_or(bound[2], -1, "count");
  return like(runtime, self, replaced_within(runtime, self.text(), old, by.text(), max_count));
}

Value join(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("join", arguments, {""}, 1);
  const bool markup = self.as<String>().markup;
  std::string out;
  size_t n = 0;
  const Ref<Iterator> iterator = iterate(runtime, bound[0]);
  for (Value item; iterator->next(runtime, item); ++n) {
    runtime.spend();
    if (markup) item = escaped(runtime, item);
    if (!item.is_string()) fail("join: item {} is '{}', expected str", n, type_name(item));
    runtime.check_text(out.size() + self.text().size() + item.text().size());
    if (n != 0) out += self.text();
    out += item.text();
  }
  return like(runtime, self, std::move(out));
}

Value justify(Runtime& runtime, const Value& self, Arguments& arguments, std::string_view name, Side side) {
  const std::vector<Value> bound = bind(name, arguments, {"", ""}, 1);
  const int64_t width = size_or(bound[0], 0, "width");
  std::string fill = text_or(runtime, bound[1], " ", "fillchar");
  if (n_code_points(fill) != 1) fail("the fill character must be exactly one character long");
  if (self.as<String>().markup) {
    fill = html_escaped(fill);
    if (n_code_points(fill) != 1) fail("the fill character must be exactly one character long");
  }
  return like(runtime, self, justified(runtime, self.text(), width, fill, side));
}

Value center(Runtime& runtime, const Value& self, Arguments& arguments) {
  return justify(runtime, self, arguments, "center", Side::kBoth);
}

Value ljust(Runtime& runtime, const Value& self, Arguments& arguments) {
  return justify(runtime, self, arguments, "ljust", Side::kLeft);
}

Value rjust(Runtime& runtime, const Value& self, Arguments& arguments) {
  return justify(runtime, self, arguments, "rjust", Side::kRight);
}

Value zfill(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("zfill", arguments, {""}, 1);
  std::string_view digits = self.text();
  const bool has_sign = digits.starts_with('+') || digits.starts_with('-');
  const std::string sign(digits.substr(0, has_sign ? 1 : 0));
  digits.remove_prefix(sign.size());
  const int64_t width = size_or(bound[0], 0, "width") - static_cast<int64_t>(sign.size());
  return like(runtime, self, sign + justified(runtime, digits, width, "0", Side::kRight));
}

Value expandtabs(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("expandtabs", arguments, {"tabsize"}, 0);
  const int64_t tab_size = size_or(bound[0], 8, "tabsize");
  std::string out;
  int64_t column = 0;
  for (const char c : self.text()) {
    if (c == '\t') {
      const int64_t n = tab_size > 0 ? tab_size - column % tab_size : 0;
      runtime.check_text(out.size() + static_cast<uint64_t>(n));
      out.append(static_cast<size_t>(n), ' ');
      column += n;
      continue;
    }
    out += c;
    if (c == '\n' || c == '\r') {
      column = 0;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      ++column;
    }
  }
  return like(runtime, self, std::move(out));
}

Value format(Runtime& runtime, const Value& self, Arguments& arguments) {
  return brace_format(runtime, self, arguments);
}

Value format_map(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("format_map", arguments, {""}, 1);
  if (!bound[0].is(Kind::kDict)) fail("format_map: expected dict, got '{}'", type_name(bound[0]));
  Arguments named;
  for (const Dict::Entry& entry : bound[0].as<Dict>().entries())
    if (entry.key.is_string()) named.named.emplace_back(std::string(entry.key.text()), entry.value);
  return brace_format(runtime, self, named);
}

/// Methods without arguments that change letter case.
template <std::string (*change)(std::string_view)>
Value recased(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("case method", arguments, {}, 0);
  runtime.spend_bytes(4 * self.text().size());
  return like(runtime, self, change(self.text()));
}

// ---- asking ----

/// Whether there is any code point and all have the property.
template <bool (*property)(uint32_t)>
Value all_are(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("is method", arguments, {}, 0);
  const std::string_view text = self.text();
  runtime.spend_bytes(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (!property(c.value)) return Value::boolean(false);
    at = c.end;
  }
  return Value::boolean(!text.empty());
}

Value isascii(Runtime&, const Value& self, Arguments& arguments) {
  bind("isascii", arguments, {}, 0);
  return Value::boolean(self.as<String>().is_ascii());
}

Value isprintable(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("isprintable", arguments, {}, 0);
  return Value::boolean(self.text().empty() || truthy(all_are<is_printable>(runtime, self, arguments)));
}

Value isidentifier(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("isidentifier", arguments, {}, 0);
  if (self.text().empty() || !truthy(all_are<is_word>(runtime, self, arguments)))
    return Value::boolean(false);
  const uint32_t first = code_point_at(self.text(), 0).value;
  return Value::boolean(first == '_' || is_alphabetic(first));
}

/// Some code point is of the case, and none of another.
Value has_case(const Value& self, bool lower) {
  bool any = false;
  for (size_t at = 0; at < self.text().size();) {
    const CodePoint c = code_point_at(self.text(), at);
    if (lower ? is_upper(c.value) : is_lower(c.value)) return Value::boolean(false);
    if (is_title(c.value)) return Value::boolean(false);
    any = any || (lower ? is_lower(c.value) : is_upper(c.value));
    at = c.end;
  }
  return Value::boolean(any);
}

Value islower(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("islower", arguments, {}, 0);
  runtime.spend_bytes(self.text().size());
  return has_case(self, true);
}

Value isupper(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("isupper", arguments, {}, 0);
  runtime.spend_bytes(self.text().size());
  return has_case(self, false);
}

Value istitle(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("istitle", arguments, {}, 0);
  runtime.spend_bytes(self.text().size());
  bool any = false, in_word = false;
  for (size_t at = 0; at < self.text().size();) {
    const CodePoint c = code_point_at(self.text(), at);
    at = c.end;
    const bool begins = is_upper(c.value) || is_title(c.value);
    const bool goes_on = is_lower(c.value);
    if ((begins && in_word) || (goes_on && !in_word)) return Value::boolean(false);
    in_word = begins || goes_on;
    any = any || in_word;
  }
  return Value::boolean(any);
}

// By name.
constexpr Method kMethods[] = {
    {"capitalize", recased<capitalized>},
    {"casefold", recased<folded_case>},
    {"center", center},
    {"count", count},
    {"endswith", endswith},
    {"expandtabs", expandtabs},
    {"find", find},
    {"format", format},
    {"format_map", format_map},
    {"index", index},
    {"isalnum", all_are<is_alphanumeric>},
    {"isalpha", all_are<is_alphabetic>},
    {"isascii", isascii},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_digit>},
    {"isidentifier", isidentifier},
    {"islower", islower},
    {"isnumeric", all_are<is_numeric>},
    {"isprintable", isprintable},
    {"isspace", all_are<is_space>},
    {"istitle", istitle},
    {"isupper", isupper},
    {"join", join},
    {"ljust", ljust},
    {"lower", recased<to_lower>},
    {"lstrip", lstrip},
    {"partition", partition},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace},
    {"rfind", rfind},
    {"rindex", rindex},
    {"rjust", rjust},
    {"rpartition", rpartition},
    {"rsplit", rsplit},
    {"rstrip", rstrip},
    {"split", split},
    {"splitlines", splitlines},
    {"startswith", startswith},
    {"strip", strip},
    {"swapcase", recased<swapped_case>},
    {"title", recased<to_title>},
    {"upper", recased<to_upper>},
    {"zfill", zfill},
};

}  // namespace

std::span<const Method> string_methods() {
  return kMethods;
}

}  // namespace forebay::jinja
