/// The parameters of an answer, as the protocols name them.
#pragma once

#include "forebay/engine.h"

#include "server/json_fields.h"
#include "server/request.h"

namespace forebay {

enum class Protocol { kChat, kCompletions, kResponses, kMessages };

/// Reads everything that says how to answer; what is absent is the model's default. Errors: kInvalidArgument
/// naming the field.
Result<AnswerOptions> parse_answer_options(const Fields& body, Protocol protocol, const ModelInfo& model);

/// OpenAI's tool list, checked; null without tools.
Result<Json> parse_tools(const Fields& body);
Result<ToolChoice> parse_tool_choice(const Fields& body, const Json& tools);
/// A choice among tools needs tools. `named` is what the request calls the field.
Result<void> check_tool_choice(const ToolChoice& choice, const Json& tools, std::string_view field);

}  // namespace forebay
