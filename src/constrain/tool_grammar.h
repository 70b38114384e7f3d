/// Tool calls as a grammar, in the styles that OutputParser reads.
#pragma once

#include <string>
#include <vector>

#include "chat/chat_style.h"
#include "chat/tool_schemas.h"
#include "constrain/grammar.h"
#include "tokenizer/tokenizer.h"

namespace forebay {

/// See compile_tool_calls; finished.
Result<Grammar> tool_call_grammar(ToolStyle style, const ToolSchemas& tools,
                                  const std::vector<std::string>& names, bool parallel,
                                  const Tokenizer& tokenizer);

}  // namespace forebay
