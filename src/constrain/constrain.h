/// Constraints on answers: JSON of a schema, any JSON object, tool calls; from the start or once the thinking
/// is over.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "chat/chat_style.h"
#include "chat/tool_schemas.h"
#include "constrain/token_constraint.h"
#include "constrain/token_index.h"
#include "tokenizer/tokenizer.h"

namespace forebay {

/// A vocabulary ready for constraints. Making one walks the whole vocabulary: keep it as long as the
/// tokenizer, which outlives it and every constraint. Thread-safe.
class ConstraintVocabulary {
 public:
  explicit ConstraintVocabulary(const Tokenizer& tokenizer)
      : tokenizer_(&tokenizer), index_(std::make_shared<TokenIndex>(tokenizer)) {}

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::shared_ptr<const TokenIndex>& index() const { return index_; }

 private:
  const Tokenizer* tokenizer_;
  std::shared_ptr<const TokenIndex> index_;
};

using ConstraintResult = Result<std::unique_ptr<TokenConstraint>>;

/// Errors: kInvalidArgument when the text is not JSON, or the schema is wrong or has no value; kUnsupported
/// naming a keyword that cannot be kept, with its place.
ConstraintResult compile_json_schema(std::string_view schema_json, const ConstraintVocabulary& vocabulary);
ConstraintResult compile_json_schema(std::string_view schema_json, const Tokenizer& tokenizer);
/// Any JSON object.
ConstraintResult compile_json_object(const ConstraintVocabulary& vocabulary);

/// One or more calls of the named functions (all of `tools` when there are none), in the model's style; with
/// `parallel` off exactly one. Parameters whose schema cannot be kept take any value of their type. Errors:
/// kUnsupported for a style without calls; kInvalidArgument naming an unknown function.
ConstraintResult compile_tool_calls(ToolStyle style, const ToolSchemas& tools,
                                    const std::vector<std::string>& names, bool parallel,
                                    const ConstraintVocabulary& vocabulary);

/// Lets the model think first: `inner` starts behind the first </think>, and until then no stop token is
/// allowed. With few tokens left (set_tokens_left), the thinking has to end. `starts_in_reasoning`: the
/// prompt left <think> open; otherwise `inner` starts at once.
std::unique_ptr<TokenConstraint> after_reasoning(std::unique_ptr<TokenConstraint> inner,
                                                 bool starts_in_reasoning,
                                                 const ConstraintVocabulary& vocabulary);

}  // namespace forebay
