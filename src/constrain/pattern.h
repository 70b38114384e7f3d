/// Regular expressions as rules: the part of ECMA 262 that describes a language without looking around.
#pragma once

#include <string_view>

#include "constrain/grammar.h"

namespace forebay {

enum class PatternText {
  kJsonString,  // characters as the inside of a JSON string spells them, quotes not included
  kPlain,       // as they are
};

/// Literals, . [] classes, \d \w \s \D \W \S, groups, |, * + ? {m,n} (greedy or not), ^ and $ at the ends;
/// without them anything may stand before or after. Negated classes of letters (\W, [^\d]) are of ASCII
/// characters. Errors: kInvalidArgument with the place; kUnsupported naming what cannot be (backreferences,
/// look-around, \b).
Result<RuleId> add_pattern(Grammar& grammar, std::string_view pattern, PatternText text);

}  // namespace forebay
