/// From the text of an XML parameter to the JSON value that its schema asks for.
#pragma once

#include <string>
#include <string_view>

#include "chat/tool_schemas.h"

namespace forebay {

/// Without the blanks at its ends.
std::string_view trimmed(std::string_view text);

/// Appends `text` as the inside of a JSON string.
void append_escaped(std::string& out, std::string_view text);

/// Whether the value's text goes out as it comes, as a JSON string: the schema allows nothing else.
inline bool is_plain_string(const AllowedTypes& types) {
  AllowedTypes string_only;
  string_only.string = true;
  return types == string_only;
}

struct ParameterValue {
  std::string json;  // one JSON value
  bool fits = true;  // false: the text was none of the allowed types and went out as a string
};
/// The whole text of one parameter. Strings win where they are allowed, except over null; a text that is
/// none of the allowed types becomes a string.
ParameterValue parameter_value(std::string_view text, const AllowedTypes& types);

}  // namespace forebay
