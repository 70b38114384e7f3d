/// The pieces a template is cut into.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace forebay::jinja {

enum class TokenType : uint8_t {
  kText,           // outside of tags
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kTilde,
  kLeftBracket,
  kRightBracket,
  kLeftParen,
  kRightParen,
  kLeftBrace,
  kRightBrace,
  kEq,
  kNe,
  kGt,
  kGe,
  kLt,
  kLe,
  kAssign,
  kDot,
  kColon,
  kPipe,
  kComma,
  kSemicolon,
  kEnd,      // of the template
  kInvalid,  // what cannot be read: the reason is its text
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 1;
  std::string text;  // kText, kName; of kString with its escapes resolved
  Int integer = 0;   // kInteger
  double real = 0;   // kFloat

  bool is_name(std::string_view name) const { return type == TokenType::kName && text == name; }
};

/// As messages show it: 'endfor', '+', 'end of template'.
std::string describe(const Token& token);
std::string_view describe(TokenType type);

}  // namespace forebay::jinja
