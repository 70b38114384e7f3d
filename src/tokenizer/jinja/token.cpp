#include "tokenizer/jinja/token.h"

#include <fmt/format.h>

namespace forebay::jinja {

std::string describe(const Token& token) {
  return token.type == TokenType::kName ? fmt::format("'{}'", token.text) : std::string(describe(token.type));
}

std::string_view describe(TokenType type) {
  switch (type) {
    case TokenType::kText:
      return "text";
    case TokenType::kVariableBegin:
      return "'{{'";
    case TokenType::kVariableEnd:
      return "'}}'";
    case TokenType::kBlockBegin:
      return "'{%'";
    case TokenType::kBlockEnd:
      return "'%}'";
    case TokenType::kName:
      return "a name";
    case TokenType::kString:
      return "a string";
    case TokenType::kInteger:
      return "an integer";
    case TokenType::kFloat:
      return "a float";
    case TokenType::kAdd:
      return "'+'";
    case TokenType::kSub:
      return "'-'";
    case TokenType::kMul:
      return "'*'";
    case TokenType::kDiv:
      return "'/'";
    case TokenType::kFloorDiv:
      return "'//'";
    case TokenType::kMod:
      return "'%'";
    case TokenType::kPow:
      return "'**'";
    case TokenType::kTilde:
      return "'~'";
    case TokenType::kLeftBracket:
      return "'['";
    case TokenType::kRightBracket:
      return "']'";
    case TokenType::kLeftParen:
      return "'('";
    case TokenType::kRightParen:
      return "')'";
    case TokenType::kLeftBrace:
      return "'{'";
    case TokenType::kRightBrace:
      return "'}'";
    case TokenType::kEq:
      return "'=='";
    case TokenType::kNe:
      return "'!='";
    case TokenType::kGt:
      return "'>'";
    case TokenType::kGe:
      return "'>='";
    case TokenType::kLt:
      return "'<'";
    case TokenType::kLe:
      return "'<='";
    case TokenType::kAssign:
      return "'='";
    case TokenType::kDot:
      return "'.'";
    case TokenType::kColon:
      return "':'";
    case TokenType::kPipe:
      return "'|'";
    case TokenType::kComma:
      return "','";
    case TokenType::kSemicolon:
      return "';'";
    case TokenType::kEnd:
      return "the end of the template";
    case TokenType::kInvalid:
      return "what cannot be read";
  }
  return "?";
}

}  // namespace forebay::jinja
