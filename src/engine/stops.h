/// Where reading a prompt pauses so that its state becomes a place to return to. Changes no result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace forebay {

/// Ascending cells in (first, prompt.size()): the end of the first message, which is the system prompt or the
/// first question; the starts of the last two messages, where the next prompt parts from this one if the
/// template renders the answer otherwise than the model wrote it; and every few thousand cells.
/// `turn_token` opens a message; -1: not known.
std::vector<int64_t> stops_in(std::span<const int32_t> prompt, int64_t first, int32_t turn_token);

/// The control token with which the template opens a message, or -1.
int32_t find_turn_token(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

}  // namespace forebay
