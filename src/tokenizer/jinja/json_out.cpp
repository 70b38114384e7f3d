#include <algorithm>
#include <cmath>

#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/json.h"
#include "tokenizer/jinja/repr.h"

namespace forebay::jinja {

namespace {

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_repr(value);
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  std::string take() { return std::move(out_); }

  void write(const Value& value) {
    runtime_.spend();
    switch (value.kind()) {
      case Kind::kNone:
        return put("null");
      case Kind::kBool:
        return put(value.to_int() != 0 ? "true" : "false");
      case Kind::kInt:
        return put(fmt::format("{}", value.to_int()));
      case Kind::kFloat:
        return put(json_float(value.to_double()));
      case Kind::kString:
        return put_string(value.text());
      case Kind::kList:
        return write_list(value.as<List>().items);
      case Kind::kTuple:
        return write_list(value.as<Tuple>().items);
      case Kind::kDict:
        return write_dict(value.as<Dict>());
      default:
        fail("Object of type {} is not JSON serializable", type_name(value));
    }
  }

 private:
  void put(std::string_view text) {
    runtime_.check_text(out_.size() + text.size());
    out_ += text;
  }

  void put_escape(uint32_t unit) { put(fmt::format("\\u{:04x}", unit)); }

  void put_string(std::string_view text) {
    put("\"");
    runtime_.check_text(out_.size() + text.size());
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const CodePoint c = code_point_at(text, at);
      at = c.end;
      switch (c.value) {
        case '"':
          put("\\\"");
          continue;
        case '\\':
          put("\\\\");
          continue;
        case '\n':
          put("\\n");
          continue;
        case '\r':
          put("\\r");
          continue;
        case '\t':
          put("\\t");
          continue;
        case '\f':
          put("\\f");
          continue;
        case '\b':
          put("\\b");
          continue;
      }
      if (c.value < 0x20 || (style_.ascii_only && c.value >= 0x7f && c.value < 0x10000)) {
        put_escape(c.value);
      } else if (style_.ascii_only && c.value >= 0x10000) {
        put_escape(0xd800 + ((c.value - 0x10000) >> 10));
        put_escape(0xdc00 + ((c.value - 0x10000) & 0x3ff));
      } else {
        out_ += text.substr(begin, at - begin);
      }
    }
    put("\"");
  }

  void put_line(int level) {
    if (!style_.indent) return;
    put("\n");
    for (int i = 0; i < level; ++i) put(*style_.indent);
  }

  void write_list(const std::vector<Value>& items) {
    if (items.empty()) return put("[]");
    const Nesting nesting(runtime_);
    put("[");
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) put(style_.item_separator);
      put_line(level_);
      write(items[i]);
    }
    put_line(--level_);
    put("]");
  }

  void write_dict(const Dict& dict) {
    if (dict.size() == 0) return put("{}");
    const Nesting nesting(runtime_);
    std::vector<const Dict::Entry*> entries;
    entries.reserve(dict.size());
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(), [this](const Dict::Entry* a, const Dict::Entry* b) {
        return less(runtime_, a->key, b->key);
      });
    put("{");
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) put(style_.item_separator);
      put_line(level_);
      put_key(entries[i]->key);
      put(style_.key_separator);
      write(entries[i]->value);
    }
    put_line(--level_);
    put("}");
  }

  void put_key(const Value& key) {
    if (key.is_string()) return put_string(key.text());
    if (!key.is_number() && !key.is_none())
      fail("keys must be str, int, float, bool or None, not {}", type_name(key));
    put("\"");
    write(key);
    put("\"");
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  writer.write(value);
  return writer.take();
}

}  // namespace forebay::jinja
