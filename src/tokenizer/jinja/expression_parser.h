/// Expressions by recursive descent, with Jinja's precedence: conditional, or, and, not, comparisons, + -, ~,
/// * / // %, **, signs, then . [] () and | is.
#pragma once

#include <string_view>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/token_stream.h"

namespace forebay::jinja {

class ExpressionParser {
 public:
  ExpressionParser(TokenStream& tokens, Template& result) : tokens_(tokens), template_(result) {}

  ExprPtr expression();
  /// Without `x if y else z` at its top: where `if` has a meaning of its own.
  ExprPtr unconditional() { return disjunction(); }
  /// One expression, or several with commas between them: a tuple. Ends at the end of the tag, or at
  /// `end_name`.
  ExprPtr tuple(bool with_conditional, std::string_view end_name = {});
  /// name, (name, name), name.attribute. Ends where no comma follows, or behind one at `end_name`.
  Target target(bool with_attributes, std::string_view end_name = {});
  /// A name that is not a constant's.
  std::string variable_name();
  /// One more `| filter(...)` and so on, over `operand`, which is null for the text of a block.
  ExprPtr filters(ExprPtr operand);
  /// The same without the first bar.
  ExprPtr filters_of_block();

 private:
  friend class DepthCheck;

  template <typename Part, typename Find>
  ExprPtr arithmetic(Part part, Find find);
  ExprPtr conditional();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters);
  ExprPtr primary();
  ExprPtr postfix(ExprPtr expr);
  ExprPtr filters_and_tests(ExprPtr expr);

  ExprPtr tuple_items(bool with_conditional, bool in_parentheses, std::string_view end_name);
  bool at_tuple_end(std::string_view end_name) const;
  ExprPtr list();
  ExprPtr dict();
  ExprPtr string();
  ExprPtr subscript(ExprPtr object);
  ExprPtr slice_or_key(ExprPtr& object);
  ExprPtr call(ExprPtr callee);
  ExprPtr filter(ExprPtr operand);
  ExprPtr test(ExprPtr operand);
  CallArguments arguments();
  std::string dotted_name();
  Target target_item(bool with_attributes);

  ExprPtr constant(int line, Value value);
  ExprPtr string_constant(int line, std::string text);
  /// The node with its height, which must not be too much.
  ExprPtr measured(ExprPtr expr) const;

  TokenStream& tokens_;
  Template& template_;
  int depth_ = 0;
};

}  // namespace forebay::jinja
