/// The conversation of an OpenAI chat request, as chat templates read it.
#pragma once

#include "server/json_fields.h"

namespace forebay {

/// Checks every message and brings it into one shape: role system, user, assistant or tool; content a string;
/// reasoning_content and tool_calls (id, type, function: name and arguments) where there are any. Arguments
/// that are not a JSON object stay the string they were: see require_readable_calls.
/// Errors: kInvalidArgument naming the field ("messages[2].content[0].type: ...").
Result<Json> parse_messages(const Fields& body);

/// A string, or a list of text parts joined by line ends. Errors: kInvalidArgument for other parts.
Result<std::string> parse_content(const Fields& message, std::string_view name);

/// An assistant's message; "<think>...</think>" at the beginning of its content becomes its reasoning.
Json assistant_message(std::string content, std::string reasoning, Json tool_calls);
/// One entry of tool_calls; `arguments` is JSON text.
Json tool_call(std::string_view id, std::string_view name, std::string_view arguments);

/// After calls that are remembered were put back (answer_memory.h): the others must be objects, because
/// templates write them out member by member. Errors: kInvalidArgument naming the call.
Result<void> require_readable_calls(const Json& messages);

}  // namespace forebay
