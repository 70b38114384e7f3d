/// Anthropic's messages.
#pragma once

#include <memory>
#include <string>

#include "forebay/engine.h"

#include "server/reply.h"
#include "server/request.h"

namespace forebay {

/// With `counting` nothing but what makes the prompt is required. Errors: kInvalidArgument naming the field.
Result<ChatRequest> parse_anthropic_request(const Json& body, const ModelInfo& model, bool counting = false);

std::unique_ptr<Reply> make_anthropic_reply(std::string model);

Json anthropic_error(const ApiError& error);

}  // namespace forebay
