/// JSON Schema -> grammar. What the grammar writes is always valid under the schema; what it cannot write
/// (members in another order, wild white space) stands in docs/constrained.md.
#pragma once

#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "forebay/result.h"

#include "constrain/json_rules.h"

namespace forebay {

/// For one schema document. Confined.
class SchemaCompiler {
 public:
  /// Both outlive the compiler.
  SchemaCompiler(JsonRules& rules, const nlohmann::ordered_json& document)
      : rules_(rules), document_(document) {}

  /// The rule for a schema inside the document; `path` is how errors name it ("#/properties/a").
  /// Errors: kUnsupported naming a keyword that cannot be kept, kInvalidArgument for one that is not as it
  /// should be.
  Result<RuleId> compile(const nlohmann::ordered_json& schema, const std::string& path);

 private:
  using Json = nlohmann::ordered_json;

  Result<RuleId> compile_object_schema(const Json& schema, const std::string& path);
  Result<RuleId> compile_reference(const Json& schema, const std::string& path);
  Result<RuleId> compile_choice(const Json& schema, const char* keyword, const std::string& path);
  Result<RuleId> compile_values(const Json& schema, const std::string& path);
  Result<RuleId> compile_type(const Json& schema, const std::string& type, const std::string& path);
  Result<RuleId> compile_string(const Json& schema, const std::string& path);
  Result<RuleId> compile_number(const Json& schema, bool integer, const std::string& path);
  Result<RuleId> compile_array(const Json& schema, const std::string& path);
  Result<RuleId> compile_object(const Json& schema, const std::string& path);
  RuleId any_of(const std::vector<RuleId>& rules);

  JsonRules& rules_;
  const Json& document_;
  std::map<std::string, RuleId> references_;  // known before they are compiled: they may contain themselves
  int depth_ = 0;
};

/// A JSON text of the schema, two line ends allowed before it; finished.
Result<Grammar> compile_schema(const nlohmann::ordered_json& schema);
/// Any JSON object, likewise.
Grammar json_object_grammar();

/// Whether no value fits both schemas, as far as it can be seen.
bool are_disjoint(const nlohmann::ordered_json& document, const nlohmann::ordered_json& a,
                  const nlohmann::ordered_json& b);
/// The schema that "$ref" names inside the document; null when there is none.
const nlohmann::ordered_json* find_reference(const nlohmann::ordered_json& document,
                                             const std::string& reference);

}  // namespace forebay
