/// The functions that a request offers to the model, and what their parameters may be.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "forebay/result.h"

namespace forebay {

/// JSON types that a schema allows. Thread-compatible.
struct AllowedTypes {
  bool string = false;
  bool null = false;
  bool number = false;
  bool integer = false;
  bool boolean = false;
  bool object = false;
  bool array = false;
  bool any = false;  // the schema does not say

  bool operator==(const AllowedTypes&) const = default;
};

/// Immutable after parsing. Thread-safe.
class ToolSchemas {
 public:
  ToolSchemas() = default;
  /// OpenAI's list (`{"type": "function", "function": {"name", "parameters"}}`, or the same without the
  /// inner object) or Anthropic's (`{"name", "input_schema"}`).
  /// Errors: kInvalidArgument, naming the element ("tools[1].function.name: ...").
  static Result<ToolSchemas> parse(const nlohmann::ordered_json& tools);

  bool empty() const { return tools_.empty(); }
  bool has(std::string_view name) const { return tools_.contains(name); }
  /// In the order of the request.
  const std::vector<std::string>& names() const { return names_; }
  /// The whole parameter schema of one function; an empty object when it has none. `name` is known.
  const nlohmann::ordered_json& parameters(std::string_view name) const { return tools_.find(name)->second; }
  /// Of an unknown function or parameter: any.
  AllowedTypes types_of(std::string_view function, std::string_view parameter) const;

 private:
  std::map<std::string, nlohmann::ordered_json, std::less<>> tools_;
  std::vector<std::string> names_;
};

}  // namespace forebay
