/// OpenAI's older completions: a text that goes on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/openai_chat.h"

namespace forebay {

class PromptMaker;

struct CompletionRequest {
  std::vector<Json> prompts;  // each a string or a list of token ids
  bool echo = false;
  AnswerOptions options;
};
/// Errors: kInvalidArgument naming the field.
Result<CompletionRequest> parse_completion_request(const Json& body, const ModelInfo& model);

/// `echoes`: per prompt, what stands before its answers.
std::unique_ptr<Reply> make_completion_reply(std::string model, const AnswerOptions& options,
                                             const Tokenizer& tokenizer, std::vector<std::string> echoes);

}  // namespace forebay
