/// The spans of an edit, from a conversation before and after it or from five texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "forebay/engine.h"
#include "forebay/result.h"

#include "eval/scr.h"

namespace forebay {

struct ScrCase {
  std::string name;
  std::string kind;
  ScrSpans spans;
};

/// `json` is a conversation: an object with "messages", what else the template reads, and possibly "edits", a
/// list of objects with "message" (an index) and one of
///     "content": TEXT                  the message says this instead
///     "replace": TEXT, "with": TEXT    a part of it does, wherever it occurs
///     "reasoning": TEXT                the message had been thought about before it was said; now that is
///     gone
/// and optionally "name" and "kind". `edit` picks one of them. Without "edits" it is the index of a message,
/// which loses its "reasoning_content" if it has any, else all but the first line of its content.
/// A last message of the assistant is D; the spans come from comparing the tokens of the prompts before it.
/// Errors: kCorrupt naming what a conversation must have; kInvalidArgument for an edit that is not there,
/// changes nothing or changes the end of the prompt.
Result<ScrCase> scr_case_from_conversation(const Engine& engine, std::string_view json, int64_t edit);

/// How many edits scr_case_from_conversation() has to choose from.
Result<int64_t> n_scr_edits(std::string_view json);

/// From the tokens of two prompts: their common beginning, the common end of what remains, and the middles.
ScrSpans split_edit(std::vector<int32_t> before, std::vector<int32_t> after);

}  // namespace forebay
