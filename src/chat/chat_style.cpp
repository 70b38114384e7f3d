#include "chat/chat_style.h"

namespace forebay {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

ToolStyle tool_style_of(std::string_view source) {
  if (!contains(source, kToolOpen)) return ToolStyle::kNone;
  if (contains(source, kFunctionOpen) && contains(source, kParameterOpen)) return ToolStyle::kXml;
  // Others write a bare name, or pairs of keys and values, between the same tags.
  const bool json =
      contains(source, "\"name\"") || contains(source, "\\\"name\\\"") || contains(source, "'name'");
  return json && contains(source, "arguments") && !contains(source, "<arg_key>") ? ToolStyle::kJson
                                                                                 : ToolStyle::kNone;
}

}  // namespace

std::string_view name_of(ToolStyle style) {
  switch (style) {
    case ToolStyle::kNone:
      return "none";
    case ToolStyle::kXml:
      return "xml";
    case ToolStyle::kJson:
      return "json";
  }
  return "unknown";
}

ChatStyle ChatStyle::of_template(std::string_view source) {
  return {.tools = tool_style_of(source),
          .reasons = contains(source, kThinkClose),
          .can_switch_off = contains(source, "enable_thinking")};
}

}  // namespace forebay
