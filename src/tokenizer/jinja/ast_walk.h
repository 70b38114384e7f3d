/// Visiting the direct children of expressions.
#pragma once

#include "tokenizer/jinja/ast.h"

namespace forebay::jinja {

template <typename F>
void for_each_argument(const CallArguments& arguments, F f) {
  for (const ExprPtr& argument : arguments.positional) f(*argument);
  for (const auto& [name, argument] : arguments.named) f(*argument);
  if (arguments.spread) f(*arguments.spread);
  if (arguments.spread_named) f(*arguments.spread_named);
}

/// Calls f(child) in the order of the source, as far as it matters: variables are read in any order.
template <typename F>
void for_each_child(const Expr& expr, F f) {
  switch (expr.kind) {
    case ExprKind::kConstant:
    case ExprKind::kName:
      return;
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kConcat:
      for (const ExprPtr& item : static_cast<const SequenceExpr&>(expr).items) f(*item);
      return;
    case ExprKind::kDict:
      for (const auto& [key, value] : static_cast<const DictExpr&>(expr).entries) {
        f(*key);
        f(*value);
      }
      return;
    case ExprKind::kUnary:
      return f(*static_cast<const UnaryExpr&>(expr).operand);
    case ExprKind::kArithmetic: {
      const auto& arithmetic = static_cast<const ArithmeticExpr&>(expr);
      f(*arithmetic.first);
      for (const ArithmeticExpr::Step& step : arithmetic.steps) f(*step.operand);
      return;
    }
    case ExprKind::kLogic:
      for (const ExprPtr& operand : static_cast<const LogicExpr&>(expr).operands) f(*operand);
      return;
    case ExprKind::kCompare: {
      const auto& compare = static_cast<const CompareExpr&>(expr);
      f(*compare.first);
      for (const CompareExpr::Step& step : compare.steps) f(*step.operand);
      return;
    }
    case ExprKind::kConditional: {
      const auto& conditional = static_cast<const ConditionalExpr&>(expr);
      f(*conditional.test);
      f(*conditional.if_true);
      if (conditional.if_false) f(*conditional.if_false);
      return;
    }
    case ExprKind::kAttribute:
      return f(*static_cast<const AttributeExpr&>(expr).object);
    case ExprKind::kItem:
      f(*static_cast<const ItemExpr&>(expr).object);
      f(*static_cast<const ItemExpr&>(expr).key);
      return;
    case ExprKind::kSlice: {
      const auto& slice = static_cast<const SliceExpr&>(expr);
      f(*slice.object);
      for (const ExprPtr* bound : {&slice.start, &slice.stop, &slice.step})
        if (*bound) f(**bound);
      return;
    }
    case ExprKind::kCall:
      f(*static_cast<const CallExpr&>(expr).callee);
      return for_each_argument(static_cast<const CallExpr&>(expr).arguments, f);
    case ExprKind::kFilter: {
      const auto& filter = static_cast<const FilterExpr&>(expr);
      if (filter.operand) f(*filter.operand);
      return for_each_argument(filter.arguments, f);
    }
    case ExprKind::kTest:
      f(*static_cast<const TestExpr&>(expr).operand);
      return for_each_argument(static_cast<const TestExpr&>(expr).arguments, f);
  }
}

}  // namespace forebay::jinja
