/// Writes one JSON value, in order, without building it first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/flags.h"

namespace forebay::cli {

/// Confined. Commas are its business; balanced calls are the caller's.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view text);
  JsonWriter& integer(int64_t value);
  JsonWriter& integer(uint64_t value);
  JsonWriter& integer(int value) { return integer(int64_t{value}); }
  /// Null when it is not finite.
  JsonWriter& number(double value);
  JsonWriter& boolean(bool value);
  JsonWriter& null() { return raw("null"); }
  /// Text that is JSON already.
  JsonWriter& raw(std::string_view json);

  const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string text_;
  bool first_ = true;  // nothing before the next value needs a comma
};

/// A member "config" with every setting of a command: what produced a result is stored in it.
void write_settings(JsonWriter& json, const FlagTable& flags);

}  // namespace forebay::cli
