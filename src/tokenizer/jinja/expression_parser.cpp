#include "tokenizer/jinja/expression_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tokenizer/jinja/ast_walk.h"
#include "tokenizer/jinja/failure.h"

namespace forebay::jinja {

namespace {

// What the C++ stack bears in the parser, in walks of the tree, and in its destructor.
constexpr int kMaxExpressionNesting = 200;

[[noreturn]] void fail_nesting(int line) {
  fail_at(line, "expression nested more than {} levels deep", kMaxExpressionNesting);
}

bool is_constant_name(std::string_view name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

std::optional<Operator> sum_operator(TokenType type) {
  if (type == TokenType::kAdd) return Operator::kAdd;
  if (type == TokenType::kSub) return Operator::kSubtract;
  return std::nullopt;
}

std::optional<Operator> product_operator(TokenType type) {
  if (type == TokenType::kMul) return Operator::kMultiply;
  if (type == TokenType::kDiv) return Operator::kDivide;
  if (type == TokenType::kFloorDiv) return Operator::kFloorDivide;
  if (type == TokenType::kMod) return Operator::kModulo;
  return std::nullopt;
}

std::optional<Operator> power_operator(TokenType type) {
  return type == TokenType::kPow ? std::optional(Operator::kPower) : std::nullopt;
}

std::optional<CompareExpr::Op> take_comparison(TokenStream& tokens) {
  using Op = CompareExpr::Op;
  const auto taken = [&](Op op) {
    tokens.take();
    return op;
  };
  switch (tokens.current().type) {
    case TokenType::kEq:
      return taken(Op::kEq);
    case TokenType::kNe:
      return taken(Op::kNe);
    case TokenType::kLt:
      return taken(Op::kLt);
    case TokenType::kLe:
      return taken(Op::kLe);
    case TokenType::kGt:
      return taken(Op::kGt);
    case TokenType::kGe:
      return taken(Op::kGe);
    default:
      break;
  }
  if (tokens.skip_name("in")) return Op::kIn;
  if (tokens.at_name("not") && tokens.next().is_name("in")) {
    tokens.take();
    return taken(Op::kNotIn);
  }
  return std::nullopt;
}

}  // namespace

/// Held while parsing what can contain itself.
class DepthCheck {
 public:
  explicit DepthCheck(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMaxExpressionNesting) {
      --parser_.depth_;
      fail_nesting(parser_.tokens_.line());
    }
  }
  DepthCheck(const DepthCheck&) = delete;
  ~DepthCheck() { --parser_.depth_; }

 private:
  ExpressionParser& parser_;
};

ExprPtr ExpressionParser::measured(ExprPtr expr) const {
  int below = 0;
  for_each_child(*expr, [&](const Expr& child) { below = std::max(below, child.height); });
  expr->height = below + 1;
  if (expr->height > kMaxExpressionNesting) fail_nesting(expr->line);
  return expr;
}

ExprPtr ExpressionParser::constant(int line, Value value) {
  return std::make_unique<ConstantExpr>(line, std::move(value));
}

ExprPtr ExpressionParser::string_constant(int line, std::string text) {
  template_.strings.push_back(std::make_unique<String>(std::move(text), false));
  return constant(line, Value(template_.strings.back().get()));
}

// ---- operators, loosest first ----

ExprPtr ExpressionParser::expression() {
  return conditional();
}

ExprPtr ExpressionParser::conditional() {
  const DepthCheck depth(*this);
  int line = tokens_.line();
  ExprPtr expr = disjunction();
  while (tokens_.skip_name("if")) {
    auto node = std::make_unique<ConditionalExpr>(line);
    node->if_true = std::move(expr);
    node->test = disjunction();
    if (tokens_.skip_name("else")) node->if_false = conditional();
    expr = measured(std::move(node));
    line = tokens_.line();
  }
  return expr;
}

ExprPtr ExpressionParser::disjunction() {
  const int line = tokens_.line();
  ExprPtr first = conjunction();
  if (!tokens_.at_name("or")) return first;
  auto node = std::make_unique<LogicExpr>(line, true);
  node->operands.push_back(std::move(first));
  while (tokens_.skip_name("or")) node->operands.push_back(conjunction());
  return measured(std::move(node));
}

ExprPtr ExpressionParser::conjunction() {
  const int line = tokens_.line();
  ExprPtr first = negation();
  if (!tokens_.at_name("and")) return first;
  auto node = std::make_unique<LogicExpr>(line, false);
  node->operands.push_back(std::move(first));
  while (tokens_.skip_name("and")) node->operands.push_back(negation());
  return measured(std::move(node));
}

ExprPtr ExpressionParser::negation() {
  if (!tokens_.at_name("not")) return comparison();
  const DepthCheck depth(*this);
  const int line = tokens_.take().line;
  return measured(std::make_unique<UnaryExpr>(line, UnaryExpr::Op::kNot, negation()));
}

ExprPtr ExpressionParser::comparison() {
  const int line = tokens_.line();
  ExprPtr first = sum();
  std::unique_ptr<CompareExpr> node;
  while (const std::optional<CompareExpr::Op> op = take_comparison(tokens_)) {
    if (!node) {
      node = std::make_unique<CompareExpr>(line);
      node->first = std::move(first);
    }
    node->steps.push_back({*op, sum()});
  }
  return node ? measured(std::move(node)) : std::move(first);
}

/// A chain of operands of one precedence: `part` parses an operand, `find` knows the operators.
template <typename Part, typename Find>
ExprPtr ExpressionParser::arithmetic(Part part, Find find) {
  const int line = tokens_.line();
  ExprPtr first = part();
  if (!find(tokens_.current().type)) return first;
  auto chain = std::make_unique<ArithmeticExpr>(line);
  chain->first = std::move(first);
  while (const std::optional<Operator> op = find(tokens_.current().type)) {
    tokens_.take();
    chain->steps.push_back({*op, part()});
  }
  return measured(std::move(chain));
}

ExprPtr ExpressionParser::sum() {
  return arithmetic([this] { return concatenation(); }, sum_operator);
}

ExprPtr ExpressionParser::concatenation() {
  const int line = tokens_.line();
  ExprPtr first = product();
  if (!tokens_.at(TokenType::kTilde)) return first;
  auto node = std::make_unique<SequenceExpr>(ExprKind::kConcat, line);
  node->items.push_back(std::move(first));
  while (tokens_.skip(TokenType::kTilde)) node->items.push_back(product());
  return measured(std::move(node));
}

ExprPtr ExpressionParser::product() {
  return arithmetic([this] { return power(); }, product_operator);
}

ExprPtr ExpressionParser::power() {
  return arithmetic([this] { return unary(true); }, power_operator);
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  ExprPtr expr;
  if (tokens_.at(TokenType::kSub) || tokens_.at(TokenType::kAdd)) {
    const DepthCheck depth(*this);
    const Token& sign = tokens_.take();
    const auto op = sign.type == TokenType::kSub ? UnaryExpr::Op::kNegative : UnaryExpr::Op::kPositive;
    expr = measured(std::make_unique<UnaryExpr>(sign.line, op, unary(false)));
  } else {
    expr = primary();
  }
  expr = postfix(std::move(expr));
  return with_filters ? filters_and_tests(std::move(expr)) : std::move(expr);
}

// ---- the smallest parts ----

ExprPtr ExpressionParser::primary() {
  const Token& token = tokens_.current();
  const int line = token.line;
  switch (token.type) {
    case TokenType::kName: {
      const std::string name = tokens_.take().text;
      if (name == "true" || name == "True") return constant(line, Value::boolean(true));
      if (name == "false" || name == "False") return constant(line, Value::boolean(false));
      if (name == "none" || name == "None") return constant(line, Value::none());
      return std::make_unique<NameExpr>(line, name);
    }
    case TokenType::kString:
      return string();
    case TokenType::kInteger:
      return constant(line, Value::integer(tokens_.take().integer));
    case TokenType::kFloat:
      return constant(line, Value::real(tokens_.take().real));
    case TokenType::kLeftParen: {
      tokens_.take();
      ExprPtr inside = tuple_items(true, true, {});
      tokens_.expect(TokenType::kRightParen);
      return inside;
    }
    case TokenType::kLeftBracket:
      return list();
    case TokenType::kLeftBrace:
      return dict();
    default:
      tokens_.fail_expected("an expression");
  }
}

ExprPtr ExpressionParser::string() {
  const int line = tokens_.line();
  std::string text = tokens_.take().text;
  while (tokens_.at(TokenType::kString)) text += tokens_.take().text;
  return string_constant(line, std::move(text));
}

ExprPtr ExpressionParser::list() {
  auto node = std::make_unique<SequenceExpr>(ExprKind::kList, tokens_.line());
  tokens_.expect(TokenType::kLeftBracket);
  while (!tokens_.at(TokenType::kRightBracket)) {
    if (!node->items.empty()) {
      tokens_.expect(TokenType::kComma);
      if (tokens_.at(TokenType::kRightBracket)) break;
    }
    node->items.push_back(expression());
  }
  tokens_.expect(TokenType::kRightBracket);
  return measured(std::move(node));
}

ExprPtr ExpressionParser::dict() {
  auto node = std::make_unique<DictExpr>(tokens_.line());
  tokens_.expect(TokenType::kLeftBrace);
  while (!tokens_.at(TokenType::kRightBrace)) {
    if (!node->entries.empty()) {
      tokens_.expect(TokenType::kComma);
      if (tokens_.at(TokenType::kRightBrace)) break;
    }
    ExprPtr key = expression();
    tokens_.expect(TokenType::kColon);
    node->entries.emplace_back(std::move(key), expression());
  }
  tokens_.expect(TokenType::kRightBrace);
  return measured(std::move(node));
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  return tokens_.at(TokenType::kVariableEnd) || tokens_.at(TokenType::kBlockEnd) ||
         tokens_.at(TokenType::kRightParen) || (!end_name.empty() && tokens_.at_name(end_name));
}

ExprPtr ExpressionParser::tuple(bool with_conditional, std::string_view end_name) {
  return tuple_items(with_conditional, false, end_name);
}

ExprPtr ExpressionParser::tuple_items(bool with_conditional, bool in_parentheses, std::string_view end_name) {
  auto node = std::make_unique<SequenceExpr>(ExprKind::kTuple, tokens_.line());
  bool has_comma = false;
  while (true) {
    if (!node->items.empty()) tokens_.expect(TokenType::kComma);
    if (at_tuple_end(end_name)) break;
    node->items.push_back(with_conditional ? expression() : unconditional());
    if (!tokens_.at(TokenType::kComma)) break;
    has_comma = true;
  }
  if (has_comma) return measured(std::move(node));
  if (!node->items.empty()) return std::move(node->items[0]);
  if (!in_parentheses) tokens_.fail_expected("an expression");
  return node;
}

Target ExpressionParser::target(bool with_attributes, std::string_view end_name) {
  const DepthCheck depth(*this);
  Target result;
  result.line = tokens_.line();
  bool has_comma = false;
  while (true) {
    if (!result.items.empty()) tokens_.expect(TokenType::kComma);
    if (at_tuple_end(end_name)) break;
    result.items.push_back(target_item(with_attributes));
    if (!tokens_.at(TokenType::kComma)) break;
    has_comma = true;
  }
  if (has_comma) {
    result.is_tuple = true;
    return result;
  }
  if (result.items.empty()) tokens_.fail_expected("a name");
  Target only = std::move(result.items[0]);
  return only;
}

std::string ExpressionParser::variable_name() {
  const Token& token = tokens_.expect(TokenType::kName);
  if (is_constant_name(token.text)) fail_at(token.line, "cannot assign to '{}'", token.text);
  return token.text;
}

Target ExpressionParser::target_item(bool with_attributes) {
  if (tokens_.skip(TokenType::kLeftParen)) {
    Target inside = target(false);
    tokens_.expect(TokenType::kRightParen);
    return inside;
  }
  Target result;
  result.line = tokens_.line();
  result.name = variable_name();
  if (with_attributes && tokens_.skip(TokenType::kDot))
    result.attribute = tokens_.expect(TokenType::kName).text;
  return result;
}

// ---- what follows an operand ----

ExprPtr ExpressionParser::postfix(ExprPtr expr) {
  while (true) {
    if (tokens_.at(TokenType::kDot) || tokens_.at(TokenType::kLeftBracket)) {
      expr = subscript(std::move(expr));
    } else if (tokens_.at(TokenType::kLeftParen)) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr expr) {
  while (true) {
    if (tokens_.at(TokenType::kPipe)) {
      expr = filters(std::move(expr));
    } else if (tokens_.at_name("is")) {
      expr = test(std::move(expr));
    } else if (tokens_.at(TokenType::kLeftParen)) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr object) {
  const int line = tokens_.line();
  if (tokens_.skip(TokenType::kDot)) {
    if (tokens_.at(TokenType::kName))
      return measured(std::make_unique<AttributeExpr>(line, std::move(object), tokens_.take().text));
    if (!tokens_.at(TokenType::kInteger)) tokens_.fail_expected("a name or a number");
    ExprPtr key = constant(line, Value::integer(tokens_.take().integer));
    return measured(std::make_unique<ItemExpr>(line, std::move(object), std::move(key)));
  }
  tokens_.expect(TokenType::kLeftBracket);
  ExprPtr key = slice_or_key(object);
  if (!tokens_.at(TokenType::kComma)) {
    tokens_.expect(TokenType::kRightBracket);
    if (!object) return key;
    return measured(std::make_unique<ItemExpr>(line, std::move(object), std::move(key)));
  }
  // x[a, b] is x[(a, b)].
  if (!object) tokens_.fail_expected("']'");
  auto keys = std::make_unique<SequenceExpr>(ExprKind::kTuple, line);
  keys->items.push_back(std::move(key));
  while (tokens_.skip(TokenType::kComma)) keys->items.push_back(expression());
  tokens_.expect(TokenType::kRightBracket);
  return measured(std::make_unique<ItemExpr>(line, std::move(object), measured(std::move(keys))));
}

/// A key, or the slice of `object`, which then moves into it.
ExprPtr ExpressionParser::slice_or_key(ExprPtr& object) {
  const int line = tokens_.line();
  ExprPtr start;
  if (!tokens_.at(TokenType::kColon)) {
    start = expression();
    if (!tokens_.at(TokenType::kColon)) return start;
  }
  auto slice = std::make_unique<SliceExpr>(line);
  slice->object = std::move(object);
  slice->start = std::move(start);
  const auto bound_follows = [this] {
    return !tokens_.at(TokenType::kColon) && !tokens_.at(TokenType::kRightBracket) &&
           !tokens_.at(TokenType::kComma);
  };
  tokens_.expect(TokenType::kColon);
  if (bound_follows()) slice->stop = expression();
  if (tokens_.skip(TokenType::kColon) && bound_follows()) slice->step = expression();
  return measured(std::move(slice));
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  auto node = std::make_unique<CallExpr>(tokens_.line());
  node->callee = std::move(callee);
  node->arguments = arguments();
  return measured(std::move(node));
}

CallArguments ExpressionParser::arguments() {
  CallArguments result;
  const auto check = [this](bool valid) {
    if (!valid) fail_at(tokens_.line(), "this argument cannot follow the ones before it");
  };
  tokens_.expect(TokenType::kLeftParen);
  for (bool first = true; !tokens_.at(TokenType::kRightParen); first = false) {
    if (!first) {
      tokens_.expect(TokenType::kComma);
      if (tokens_.at(TokenType::kRightParen)) break;
    }
    if (tokens_.at(TokenType::kMul)) {
      check(!result.spread && !result.spread_named);
      tokens_.take();
      result.spread = expression();
    } else if (tokens_.at(TokenType::kPow)) {
      check(!result.spread_named);
      tokens_.take();
      result.spread_named = expression();
    } else if (tokens_.at(TokenType::kName) && tokens_.next().type == TokenType::kAssign) {
      check(!result.spread_named);
      std::string name = tokens_.take().text;
      for (const auto& [other, value] : result.named)
        if (other == name) fail_at(tokens_.line(), "argument '{}' is given twice", name);
      tokens_.take();
      result.named.emplace_back(std::move(name), expression());
    } else {
      check(!result.spread && !result.spread_named && result.named.empty());
      result.positional.push_back(expression());
    }
  }
  tokens_.expect(TokenType::kRightParen);
  return result;
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect(TokenType::kName).text;
  while (tokens_.skip(TokenType::kDot)) name += "." + tokens_.expect(TokenType::kName).text;
  return name;
}

ExprPtr ExpressionParser::filters(ExprPtr operand) {
  while (tokens_.skip(TokenType::kPipe)) operand = filter(std::move(operand));
  return operand;
}

ExprPtr ExpressionParser::filters_of_block() {
  return filters(filter(nullptr));
}

ExprPtr ExpressionParser::filter(ExprPtr operand) {
  const int line = tokens_.line();
  auto node = std::make_unique<FilterExpr>(line, dotted_name());
  node->operand = std::move(operand);
  if (tokens_.at(TokenType::kLeftParen)) node->arguments = arguments();
  return measured(std::move(node));
}

ExprPtr ExpressionParser::test(ExprPtr operand) {
  const int line = tokens_.take().line;  // `is`
  const bool negated = tokens_.skip_name("not");
  auto node = std::make_unique<TestExpr>(line, dotted_name());
  node->operand = std::move(operand);
  if (tokens_.at(TokenType::kLeftParen)) {
    node->arguments = arguments();
  } else {
    const bool name_follows = tokens_.at(TokenType::kName) && !tokens_.at_name("else") &&
                              !tokens_.at_name("or") && !tokens_.at_name("and");
    if (name_follows || tokens_.at(TokenType::kString) || tokens_.at(TokenType::kInteger) ||
        tokens_.at(TokenType::kFloat) || tokens_.at(TokenType::kLeftBracket) ||
        tokens_.at(TokenType::kLeftBrace)) {
      if (tokens_.at_name("is")) fail_at(tokens_.line(), "tests with 'is' cannot be chained");
      node->arguments.positional.push_back(postfix(primary()));
    }
  }
  ExprPtr expr = measured(std::move(node));
  return negated ? measured(std::make_unique<UnaryExpr>(line, UnaryExpr::Op::kNot, std::move(expr)))
                 : std::move(expr);
}

}  // namespace forebay::jinja
