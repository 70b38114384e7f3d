/// How a model writes what is not plain text: its reasoning and its tool calls.
#pragma once

#include <string>
#include <string_view>

namespace forebay {

enum class ToolStyle {
  kNone,  // no tool calls, or in a way that is not read here: they stay text
  kXml,   // <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>
  kJson,  // <tool_call>{"name": NAME, "arguments": {...}}</tool_call>
};
std::string_view name_of(ToolStyle style);  // "none", "xml", "json"

struct ChatStyle {
  ToolStyle tools = ToolStyle::kNone;
  bool reasons = false;         // the template knows <think>
  bool can_switch_off = false;  // it reads enable_thinking

  /// What a chat template's source says.
  static ChatStyle of_template(std::string_view source);
};

inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";
inline constexpr std::string_view kToolOpen = "<tool_call>";
inline constexpr std::string_view kToolClose = "</tool_call>";
inline constexpr std::string_view kFunctionOpen = "<function=";
inline constexpr std::string_view kFunctionClose = "</function>";
inline constexpr std::string_view kParameterOpen = "<parameter=";
inline constexpr std::string_view kParameterClose = "</parameter>";

}  // namespace forebay
