#include "constrain/constrain.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "constrain/grammar_constraint.h"
#include "constrain/schema_compiler.h"
#include "constrain/tool_grammar.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

std::unique_ptr<TokenConstraint> constraint_of(Grammar grammar, const ConstraintVocabulary& vocabulary) {
  return std::make_unique<GrammarConstraint>(std::make_shared<const Grammar>(std::move(grammar)),
                                             vocabulary.index(), vocabulary.tokenizer());
}

}  // namespace

ConstraintResult compile_json_schema(std::string_view schema_json, const ConstraintVocabulary& vocabulary) {
  Json schema;
  try {
    schema = Json::parse(schema_json);
  } catch (const Json::exception& error) {
    return Error{Code::kInvalidArgument, fmt::format("schema: not JSON: {}", error.what())};
  }
  Grammar grammar = TRY(compile_schema(schema));
  return constraint_of(std::move(grammar), vocabulary);
}

ConstraintResult compile_json_schema(std::string_view schema_json, const Tokenizer& tokenizer) {
  return compile_json_schema(schema_json, ConstraintVocabulary(tokenizer));
}

ConstraintResult compile_json_object(const ConstraintVocabulary& vocabulary) {
  return constraint_of(json_object_grammar(), vocabulary);
}

ConstraintResult compile_tool_calls(ToolStyle style, const ToolSchemas& tools,
                                    const std::vector<std::string>& names, bool parallel,
                                    const ConstraintVocabulary& vocabulary) {
  Grammar grammar = TRY(tool_call_grammar(style, tools, names, parallel, vocabulary.tokenizer()));
  return constraint_of(std::move(grammar), vocabulary);
}

}  // namespace forebay
