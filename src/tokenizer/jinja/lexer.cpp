#include "tokenizer/jinja/lexer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/literal.h"
#include "tokenizer/jinja/unicode.h"

namespace forebay::jinja {

namespace {

struct Symbol {
  std::string_view text;
  TokenType type;
};

// Longer ones first.
constexpr Symbol kSymbols[] = {
    {"//", TokenType::kFloorDiv},   {"**", TokenType::kPow},         {"==", TokenType::kEq},
    {"!=", TokenType::kNe},         {">=", TokenType::kGe},          {"<=", TokenType::kLe},
    {"+", TokenType::kAdd},         {"-", TokenType::kSub},          {"/", TokenType::kDiv},
    {"*", TokenType::kMul},         {"%", TokenType::kMod},          {"~", TokenType::kTilde},
    {"[", TokenType::kLeftBracket}, {"]", TokenType::kRightBracket}, {"(", TokenType::kLeftParen},
    {")", TokenType::kRightParen},  {"{", TokenType::kLeftBrace},    {"}", TokenType::kRightBrace},
    {">", TokenType::kGt},          {"<", TokenType::kLt},           {"=", TokenType::kAssign},
    {".", TokenType::kDot},         {":", TokenType::kColon},        {"|", TokenType::kPipe},
    {",", TokenType::kComma},       {";", TokenType::kSemicolon},
};

std::string with_unix_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    try {
      while (at_ < source_.size()) lex_text();
      push(TokenType::kEnd);
    } catch (Failure& failure) {
      // For the parser to come across: it may find something wrong before it.
      push(TokenType::kInvalid).text = std::move(failure.reason);
    }
    return std::move(tokens_);
  }

 private:
  Token& push(TokenType type) {
    tokens_.emplace_back();
    tokens_.back().type = type;
    tokens_.back().line = line_;
    return tokens_.back();
  }

  bool looking_at(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  void advance_to(size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  size_t skip_spaces(size_t from) const {
    while (from < source_.size()) {
      const CodePoint c = code_point_at(source_, from);
      if (!is_space(c.value)) break;
      from = c.end;
    }
    return from;
  }

  // ---- text and the beginnings of tags ----

  /// Text up to the next tag, and the tag.
  void lex_text() {
    size_t open = at_;
    while (true) {
      open = std::min(source_.find('{', open), source_.size());
      if (open + 1 >= source_.size()) {
        open = source_.size();
        break;
      }
      const char next = source_[open + 1];
      if (next == '%' || next == '{' || next == '#') break;
      ++open;
    }
    std::string_view text = source_.substr(at_, open - at_);
    if (open == source_.size()) return push_text(text, open);

    const char kind = source_[open + 1];
    size_t after = open + 2;
    char sign = 0;
    if (after < source_.size() && (source_[after] == '-' || source_[after] == '+')) sign = source_[after++];
    push_text(trimmed_before_tag(text, sign, kind == '{'), open);
    if (kind == '#') {
      advance_to(after);
      skip_comment();
    } else if (const size_t raw_end = kind == '%' ? end_of_raw_tag(after) : 0; raw_end != 0) {
      advance_to(raw_end);
      lex_raw();
    } else {
      push(kind == '{' ? TokenType::kVariableBegin : TokenType::kBlockBegin);
      advance_to(after);
      lex_tag(kind == '{' ? TokenType::kVariableEnd : TokenType::kBlockEnd);
    }
  }

  void push_text(std::string_view text, size_t end) {
    if (!text.empty()) push(TokenType::kText).text = text;
    advance_to(end);
  }

  /// What is left of the text before a tag: '-' takes all white space; else a block tag or comment that
  /// stands first on its line takes the indentation.
  std::string_view trimmed_before_tag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || is_variable) return text;
    const size_t newline = text.rfind('\n');
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_begin == 0 && !at_line_start_) return text;
    return strip_left(text.substr(line_begin)).empty() ? text.substr(0, line_begin) : text;
  }

  /// Behind "raw %}" when that follows, else 0.
  size_t end_of_raw_tag(size_t from) const {
    const auto follows = [&](size_t at, std::string_view text) {
      return source_.substr(at).starts_with(text);
    };
    from = skip_spaces(from);
    if (!follows(from, "raw")) return 0;
    from = skip_spaces(from + 3);
    if (follows(from, "-%}")) return skip_spaces(from + 3);
    return follows(from, "%}") ? from + 2 : 0;
  }

  /// The end of a tag at `at_`, its closing mark being `close`: which white space behind it goes with it.
  void finish_tag(char sign, size_t close_end, bool trims_newline) {
    size_t end = close_end;
    if (sign == '-') {
      end = skip_spaces(end);
    } else if (sign == 0 && trims_newline && end < source_.size() && source_[end] == '\n') {
      ++end;
    }
    advance_to(end);
    at_line_start_ = source_[end - 1] == '\n';
  }

  /// A tag opened by the last characters of a template is nothing, as in Jinja.
  void fail_unless_at_end(std::string_view reason) const {
    if (at_ < source_.size()) fail("{}", reason);
  }

  void skip_comment() {
    const size_t close = source_.find("#}", at_);
    if (close == std::string_view::npos) return fail_unless_at_end("missing end of comment tag");
    const char before = close > at_ ? source_[close - 1] : '\0';
    finish_tag(before == '-' || before == '+' ? before : '\0', close + 2, true);
  }

  void lex_raw() {
    at_line_start_ = source_[at_ - 1] == '\n';
    for (size_t open = source_.find("{%", at_); open != std::string_view::npos;
         open = source_.find("{%", open + 1)) {
      size_t at = open + 2;
      char open_sign = 0, close_sign = 0;
      if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) open_sign = source_[at++];
      at = skip_spaces(at);
      if (!source_.substr(at).starts_with("endraw")) continue;
      at = skip_spaces(at + 6);
      if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) close_sign = source_[at++];
      if (!source_.substr(at).starts_with("%}")) continue;
      push_text(trimmed_before_tag(source_.substr(at_, open - at_), open_sign, false), open);
      return finish_tag(close_sign, at + 2, true);
    }
    fail_unless_at_end("missing end of raw directive");
  }

  // ---- inside tags ----

  /// Tokens up to and with the end of the tag. Its mark is not looked for inside brackets.
  void lex_tag(TokenType end) {
    const std::string_view mark = end == TokenType::kBlockEnd ? "%}" : "}}";
    while (at_ < source_.size()) {
      if (brackets_.empty()) {
        char sign = source_[at_];
        if (sign != '-' && !(sign == '+' && end == TokenType::kBlockEnd)) sign = 0;
        const size_t close = at_ + (sign != 0 ? 1 : 0);
        if (source_.substr(close).starts_with(mark)) {
          push(end);
          return finish_tag(sign, close + 2, end == TokenType::kBlockEnd);
        }
      }
      lex_token();
    }
  }

  void lex_token() {
    const CodePoint c = code_point_at(source_, at_);
    if (is_space(c.value)) return advance_to(skip_spaces(at_));
    if (c.value >= '0' && c.value <= '9') return lex_number();
    if (is_word(c.value)) return lex_name();
    if (c.value == '"' || c.value == '\'') return lex_string(static_cast<char>(c.value));
    for (const Symbol& symbol : kSymbols) {
      if (!looking_at(symbol.text)) continue;
      balance(symbol.text);
      push(symbol.type);
      return advance_to(at_ + symbol.text.size());
    }
    fail("unexpected character '{}'", source_.substr(at_, c.end - at_));
  }

  void balance(std::string_view symbol) {
    const char c = symbol[0];
    if (c == '(') brackets_ += ')';
    if (c == '[') brackets_ += ']';
    if (c == '{') brackets_ += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (brackets_.empty()) fail("unexpected '{}'", c);
    if (brackets_.back() != c) fail("unexpected '{}', expected '{}'", c, brackets_.back());
    brackets_.pop_back();
  }

  void lex_name() {
    size_t end = at_;
    while (end < source_.size()) {
      const CodePoint c = code_point_at(source_, end);
      // Marks continue the names of scripts that need them.
      if (!is_word(c.value) && !(c.value >= 0x300 && c.value <= 0x36f)) break;
      end = c.end;
    }
    push(TokenType::kName).text = source_.substr(at_, end - at_);
    advance_to(end);
  }

  void lex_number() {
    // x.0.1 is two items, not a float.
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    const std::string_view rest = source_.substr(at_);
    if (const size_t n = after_dot ? 0 : float_literal_size(rest); n != 0) {
      push(TokenType::kFloat).real = float_literal(rest.substr(0, n));
      return advance_to(at_ + n);
    }
    const size_t n = integer_literal_size(rest);
    const std::optional<Int> value = integer_literal(rest.substr(0, n));
    if (!value) fail("integer {} is beyond 128 bits", rest.substr(0, n));
    push(TokenType::kInteger).integer = *value;
    advance_to(at_ + n);
  }

  void lex_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("unexpected character '{}', which opens no string", quote);
    std::string text = unescaped(source_.substr(at_ + 1, end - at_ - 1));
    push(TokenType::kString).text = std::move(text);
    advance_to(end + 1);
  }

  const std::string_view source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;  // the last tag ended a line
  std::string brackets_;       // those that wait to be closed
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  const std::string normalized = with_unix_newlines(source);
  return Lexer(normalized).run();
}

}  // namespace forebay::jinja
