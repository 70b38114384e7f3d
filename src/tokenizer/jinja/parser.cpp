#include "tokenizer/jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "tokenizer/jinja/expression_parser.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/lexer.h"
#include "tokenizer/jinja/scope.h"

namespace forebay::jinja {

namespace {

constexpr int kMaxBlockNesting = 100;  // of statements

// Other templates are not reachable from a chat template, and nothing is ever escaped on its own.
constexpr std::string_view kUnsupportedTags[] = {"autoescape", "block",  "extends",
                                                 "from",       "import", "include"};
constexpr std::string_view kEndTags[] = {"elif",          "else",  "endcall",  "endfilter", "endfor",
                                         "endgeneration", "endif", "endmacro", "endset",    "endwith"};

template <size_t N>
bool is_one_of(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

using EndNames = std::initializer_list<std::string_view>;

std::string listed(EndNames names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i != 0) out += i + 1 == names.size() ? " or " : ", ";
    out += fmt::format("'{}'", names.begin()[i]);
  }
  return out;
}

class Parser {
 public:
  Parser(TokenStream& tokens, Template& result)
      : tokens_(tokens), template_(result), expressions_(tokens, result) {}

  void run() { template_.body = block({}, 0); }

 private:
  /// Statements up to a tag in `ends`, at whose name the stream then stands; up to the end when there are
  /// none.
  Block block(EndNames ends, int opening_line) {
    Block body;
    if (++depth_ > kMaxBlockNesting)
      fail_at(tokens_.line(), "blocks nested more than {} levels deep", kMaxBlockNesting);
    while (!tokens_.at(TokenType::kEnd)) {
      const int line = tokens_.line();
      if (tokens_.at(TokenType::kText)) {
        body.push_back(std::make_unique<TextStatement>(line, tokens_.take().text));
      } else if (tokens_.skip(TokenType::kVariableBegin)) {
        ExprPtr value = expressions_.tuple(true);
        tokens_.expect(TokenType::kVariableEnd);
        body.push_back(std::make_unique<PrintStatement>(line, std::move(value)));
      } else {
        tokens_.expect(TokenType::kBlockBegin);
        if (std::any_of(ends.begin(), ends.end(),
                        [this](std::string_view name) { return tokens_.at_name(name); })) {
          --depth_;
          return body;
        }
        if (!tokens_.at(TokenType::kName)) tokens_.fail_expected("a tag name");
        if (ends.size() != 0 && is_one_of(kEndTags, tokens_.current().text))
          tokens_.fail_expected(listed(ends));
        statement(body);
        tokens_.expect(TokenType::kBlockEnd);
      }
    }
    if (ends.size() != 0)
      fail_at(tokens_.line(), "expected {}, got the end of the template (the block opened on line {})",
              listed(ends), opening_line);
    --depth_;
    return body;
  }

  /// The rest of an opening tag, and its body.
  Block body_of(EndNames ends, int opening_line) {
    tokens_.skip(TokenType::kColon);
    tokens_.expect(TokenType::kBlockEnd);
    return block(ends, opening_line);
  }

  /// The same when only one tag can end it; steps over its name.
  Block whole_body(std::string_view end, int opening_line) {
    Block body = body_of({end}, opening_line);
    tokens_.take();
    return body;
  }

  void statement(Block& body) {
    const int line = tokens_.line();
    const std::string tag = tokens_.take().text;
    if (tag == "print") return print_statement(body, line);
    body.push_back(named_statement(tag, line));
  }

  std::unique_ptr<Statement> named_statement(std::string_view tag, int line) {
    if (tag == "set") return set(line);
    if (tag == "if") return if_statement(line);
    if (tag == "for") return for_statement(line);
    if (tag == "macro") return macro(line);
    if (tag == "call") return call_block(line);
    if (tag == "filter") return filter_block(line);
    if (tag == "with") return with(line);
    if (tag == "generation") return generation(line);
    if (tag == "break") return std::make_unique<JumpStatement>(StatementKind::kBreak, line);
    if (tag == "continue") return std::make_unique<JumpStatement>(StatementKind::kContinue, line);
    if (is_one_of(kUnsupportedTags, tag)) fail_at(line, "tag '{}' is not supported", tag);
    if (is_one_of(kEndTags, tag)) fail_at(line, "'{}' closes nothing", tag);
    fail_at(line, "unknown tag '{}'", tag);
  }

  void print_statement(Block& body, int line) {
    for (bool first = true; !tokens_.at(TokenType::kBlockEnd); first = false) {
      if (!first) tokens_.expect(TokenType::kComma);
      body.push_back(std::make_unique<PrintStatement>(line, expressions_.expression()));
    }
  }

  std::unique_ptr<Statement> set(int line) {
    Target target = expressions_.target(true);
    if (tokens_.skip(TokenType::kAssign)) {
      auto node = std::make_unique<SetStatement>(line);
      node->target = std::move(target);
      node->value = expressions_.tuple(true);
      return node;
    }
    auto node = std::make_unique<SetBlockStatement>(line);
    node->target = std::move(target);
    node->filter = expressions_.filters(nullptr);
    node->body = whole_body("endset", line);
    return node;
  }

  std::unique_ptr<Statement> if_statement(int line) {
    auto node = std::make_unique<IfStatement>(line);
    while (true) {
      IfStatement::Branch& branch = node->branches.emplace_back();
      branch.test = expressions_.tuple(false);
      branch.body = body_of({"elif", "else", "endif"}, line);
      const std::string end = tokens_.take().text;
      if (end == "elif") continue;
      if (end == "else") node->otherwise = whole_body("endif", line);
      return node;
    }
  }

  std::unique_ptr<Statement> for_statement(int line) {
    auto node = std::make_unique<ForStatement>(line);
    node->target = expressions_.target(false, "in");
    tokens_.expect_name("in");
    node->iterable = expressions_.tuple(false, "recursive");
    if (tokens_.skip_name("if")) node->test = expressions_.expression();
    node->recursive = tokens_.skip_name("recursive");
    node->body = body_of({"endfor", "else"}, line);
    if (tokens_.take().text == "else") node->otherwise = whole_body("endfor", line);
    return node;
  }

  void signature(MacroBody& macro) {
    tokens_.expect(TokenType::kLeftParen);
    while (!tokens_.at(TokenType::kRightParen)) {
      if (!macro.parameters.empty()) tokens_.expect(TokenType::kComma);
      const int line = tokens_.line();
      MacroBody::Parameter parameter;
      parameter.name = expressions_.variable_name();
      for (const MacroBody::Parameter& other : macro.parameters)
        if (other.name == parameter.name) fail_at(line, "parameter '{}' stands twice", parameter.name);
      if (tokens_.skip(TokenType::kAssign)) {
        parameter.default_value = expressions_.expression();
      } else if (!macro.parameters.empty() && macro.parameters.back().default_value) {
        fail_at(line, "parameter '{}' without a default follows one with a default", parameter.name);
      }
      macro.parameters.push_back(std::move(parameter));
    }
    tokens_.expect(TokenType::kRightParen);
  }

  std::unique_ptr<Statement> macro(int line) {
    auto node = std::make_unique<MacroStatement>(line);
    node->macro.name = expressions_.variable_name();
    signature(node->macro);
    node->macro.body = whole_body("endmacro", line);
    return node;
  }

  std::unique_ptr<Statement> call_block(int line) {
    auto node = std::make_unique<CallBlockStatement>(line);
    if (tokens_.at(TokenType::kLeftParen)) signature(node->macro);
    node->call = expressions_.expression();
    if (node->call->kind != ExprKind::kCall) fail_at(line, "expected a call in a call tag");
    node->macro.body = whole_body("endcall", line);
    return node;
  }

  /// Marks what a model would generate, for training. Its body is called, as that of a call block is.
  std::unique_ptr<Statement> generation(int line) {
    auto node = std::make_unique<CallBlockStatement>(line);
    node->macro.body = whole_body("endgeneration", line);
    return node;
  }

  std::unique_ptr<Statement> filter_block(int line) {
    auto node = std::make_unique<FilterBlockStatement>(line);
    node->filter = expressions_.filters_of_block();
    node->body = whole_body("endfilter", line);
    return node;
  }

  std::unique_ptr<Statement> with(int line) {
    auto node = std::make_unique<WithStatement>(line);
    while (!tokens_.at(TokenType::kBlockEnd)) {
      if (!node->bindings.empty()) tokens_.expect(TokenType::kComma);
      Target target = expressions_.target(false);
      tokens_.expect(TokenType::kAssign);
      node->bindings.emplace_back(std::move(target), expressions_.expression());
    }
    node->body = whole_body("endwith", line);
    return node;
  }

  TokenStream& tokens_;
  Template& template_;
  ExpressionParser expressions_;
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Template> parse_template(std::string_view source) {
  auto result = std::make_unique<Template>();
  TokenStream tokens(tokenize(source));
  Parser(tokens, *result).run();
  resolve_names(*result);
  return result;
}

}  // namespace forebay::jinja
