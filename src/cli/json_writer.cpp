#include "cli/json_writer.h"

#include <cmath>

#include <fmt/format.h>

#include "gguf/text.h"

namespace forebay::cli {

void JsonWriter::separate() {
  if (!first_) text_ += ", ";
  first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  text_ += gguf::json_string(name) + ": ";
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  return raw(gguf::json_string(text));
}
JsonWriter& JsonWriter::integer(int64_t value) {
  return raw(fmt::format("{}", value));
}
JsonWriter& JsonWriter::integer(uint64_t value) {
  return raw(fmt::format("{}", value));
}
JsonWriter& JsonWriter::number(double value) {
  return std::isfinite(value) ? raw(fmt::format("{}", value)) : null();
}
JsonWriter& JsonWriter::boolean(bool value) {
  return raw(value ? "true" : "false");
}

void write_settings(JsonWriter& json, const FlagTable& flags) {
  json.key("config").begin_object();
  for (const Setting& setting : flags.settings()) {
    json.key(setting.name);
    setting.is_text ? json.string(setting.value) : json.raw(setting.value);
  }
  json.end_object();
}

}  // namespace forebay::cli
