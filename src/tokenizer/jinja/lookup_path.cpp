#include "tokenizer/jinja/lookup_path.h"

#include <algorithm>

#include "tokenizer/jinja/convert.h"
#include "tokenizer/jinja/subscript.h"
#include "tokenizer/jinja/text.h"

namespace forebay::jinja {

LookupPath::LookupPath(Runtime& runtime, const Value& attribute) {
  if (attribute.is_absent()) return;
  if (!attribute.is_string()) {
    keys_.push_back(attribute);
    return;
  }
  for (const std::string_view part : split_text(attribute.text(), ".", -1, Side::kLeft)) {
    const bool is_number =
        !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    const std::optional<Int> index = is_number ? parse_int(part, 10) : std::nullopt;
    keys_.push_back(index ? Value::integer(*index) : runtime.string(std::string(part)));
  }
}

Value LookupPath::of(Runtime& runtime, Value item, const Value& if_undefined) const {
  for (const Value& key : keys_) {
    runtime.spend();
    item = item_of(runtime, item, key);
    if (item.is_undefined() && !if_undefined.is_absent()) item = if_undefined;
  }
  return item;
}

Value sort_key(Runtime& runtime, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  runtime.spend_bytes(4 * value.text().size());
  return runtime.string(to_lower(value.text()));
}

}  // namespace forebay::jinja
