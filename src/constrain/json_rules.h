/// The parts of JSON that schemas are made of, as rules of a grammar. Texts are compact, or broken into lines
/// with up to 16 spaces at their start; numbers have at most 18 digits before the point.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "constrain/grammar.h"

namespace forebay {

/// Makes each rule when it is first asked for. Confined.
class JsonRules {
 public:
  explicit JsonRules(Grammar& grammar) : grammar_(grammar) {}

  RuleId space();      // where a line may end: behind a bracket or comma, before a closing bracket
  RuleId character();  // one character of a string's inside, escapes included
  RuleId string();
  RuleId integer();
  RuleId number();
  RuleId value();   // anything
  RuleId object();  // any members
  RuleId array();   // any elements
  /// minLength to maxLength characters; no maximum: as many as it likes.
  RuleId string_of_length(int64_t min, std::optional<int64_t> max);
  /// Exactly this value, compact.
  RuleId literal(const nlohmann::ordered_json& value);

  /// A member's name, which is not one of `taken` and has no escapes.
  RuleId other_name(const std::vector<std::string>& taken);
  /// [item, item, ...]: first those of `first`, then `rest` (-1: none) up to max in all.
  RuleId array_of(const std::vector<RuleId>& first, RuleId rest, int64_t min, std::optional<int64_t> max);

  struct Member {
    RuleId pair;  // "name": value
    bool required;
  };
  /// Members in this order, optional ones left out at will, then any number of `other` (-1: none).
  RuleId object_of(const std::vector<Member>& members, RuleId other);
  /// name, colon, value.
  RuleId pair(RuleId name, RuleId value);

  Grammar& grammar() { return grammar_; }

 private:
  template <typename Build>
  RuleId once(RuleId& rule, Build build);

  Grammar& grammar_;
  RuleId space_ = -1, character_ = -1, string_ = -1, integer_ = -1, number_ = -1, value_ = -1, object_ = -1,
         array_ = -1;
};

/// Characters that stand for themselves in a JSON string.
const std::vector<CodePointRange>& plain_characters();

}  // namespace forebay
