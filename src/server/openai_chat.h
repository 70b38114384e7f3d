/// OpenAI's chat completions.
#pragma once

#include <memory>
#include <string>

#include "forebay/engine.h"

#include "server/reply.h"
#include "server/request.h"

namespace forebay {

/// Errors: kInvalidArgument naming the field.
Result<ChatRequest> parse_chat_request(const Json& body, const ModelInfo& model);

std::unique_ptr<Reply> make_chat_reply(std::string model, const AnswerOptions& options,
                                       const Tokenizer& tokenizer);

/// OpenAI's errors, of all of its endpoints.
Json openai_error(const ApiError& error);
Json openai_usage(const Usage& usage);
/// How a stream ends: the usage in a chunk (`frame` and its fields) where it was asked for, then [DONE].
std::string openai_stream_end(Json frame, const AnswerOptions& options, const Usage& usage);
/// What "length" hides, as a member of a choice: "context", "repetition"; else nothing.
void add_finish_detail(Json& choice_json, const Choice& choice);
/// "stop", "length", "tool_calls".
std::string_view openai_finish_reason(const Choice& choice);

}  // namespace forebay
