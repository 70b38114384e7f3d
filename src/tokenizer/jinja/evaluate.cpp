#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/repr.h"
#include "tokenizer/jinja/subscript.h"
#include "tokenizer/jinja/tests.h"

namespace forebay::jinja {

Value Interpreter::evaluate(const Expr& expr, Activation& variables) {
  runtime_.spend();
  runtime_.line = expr.line;
  if (expr.kind == ExprKind::kConstant) return static_cast<const ConstantExpr&>(expr).value;
  if (expr.kind == ExprKind::kName) return evaluate_name(static_cast<const NameExpr&>(expr), variables);
  const Nesting nesting(runtime_);
  return evaluate_inner(expr, variables);
}

// Each kind has a function of its own, so that the frame of this one, which is on the stack at every level,
// is small.
Value Interpreter::evaluate_inner(const Expr& expr, Activation& variables) {
  switch (expr.kind) {
    case ExprKind::kConstant:
    case ExprKind::kName:
      break;
    case ExprKind::kTuple:
      return runtime_.tuple(evaluate_all(static_cast<const SequenceExpr&>(expr).items, variables));
    case ExprKind::kList:
      return runtime_.list(evaluate_all(static_cast<const SequenceExpr&>(expr).items, variables));
    case ExprKind::kDict:
      return evaluate_dict(static_cast<const DictExpr&>(expr), variables);
    case ExprKind::kUnary:
      return evaluate_unary(static_cast<const UnaryExpr&>(expr), variables);
    case ExprKind::kArithmetic:
      return evaluate_arithmetic(static_cast<const ArithmeticExpr&>(expr), variables);
    case ExprKind::kLogic:
      return evaluate_logic(static_cast<const LogicExpr&>(expr), variables);
    case ExprKind::kCompare:
      return evaluate_compare(static_cast<const CompareExpr&>(expr), variables);
    case ExprKind::kConcat:
      return evaluate_concat(static_cast<const SequenceExpr&>(expr), variables);
    case ExprKind::kConditional:
      return evaluate_conditional(static_cast<const ConditionalExpr&>(expr), variables);
    case ExprKind::kAttribute: {
      const auto& attribute = static_cast<const AttributeExpr&>(expr);
      const Value object = evaluate(*attribute.object, variables);
      runtime_.line = expr.line;
      return attribute_of(runtime_, object, attribute.name);
    }
    case ExprKind::kItem:
      return evaluate_item(static_cast<const ItemExpr&>(expr), variables);
    case ExprKind::kSlice:
      return evaluate_slice(static_cast<const SliceExpr&>(expr), variables);
    case ExprKind::kCall:
      return evaluate_call(static_cast<const CallExpr&>(expr), variables, {});
    case ExprKind::kFilter:
      return evaluate_filter(static_cast<const FilterExpr&>(expr), variables, {});
    case ExprKind::kTest:
      return evaluate_test(static_cast<const TestExpr&>(expr), variables);
  }
  return {};
}

Value Interpreter::evaluate_name(const NameExpr& expr, Activation& variables) {
  const Value& value = variables.at(expr.slot);
  return value.is_missing() ? runtime_.undefined(fmt::format("'{}' is undefined", expr.name)) : value;
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExprPtr>& exprs, Activation& variables) {
  std::vector<Value> values;
  values.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) values.push_back(evaluate(*expr, variables));
  return values;
}

Value Interpreter::evaluate_dict(const DictExpr& expr, Activation& variables) {
  const Ref<Dict> dict = runtime_.dict();
  for (const auto& [key_expr, value_expr] : expr.entries) {
    const Value key = evaluate(*key_expr, variables);
    Value value = evaluate(*value_expr, variables);
    runtime_.line = expr.line;
    dict->set(runtime_, key, std::move(value));
  }
  return dict;
}

Value Interpreter::evaluate_unary(const UnaryExpr& expr, Activation& variables) {
  const Value operand = evaluate(*expr.operand, variables);
  runtime_.line = expr.line;
  switch (expr.op) {
    case UnaryExpr::Op::kNot:
      return Value::boolean(!truthy(operand));
    case UnaryExpr::Op::kNegative:
      return negated(operand);
    case UnaryExpr::Op::kPositive:
      break;
  }
  return same_number(operand);
}

Value Interpreter::evaluate_arithmetic(const ArithmeticExpr& expr, Activation& variables) {
  Value value = evaluate(*expr.first, variables);
  for (const ArithmeticExpr::Step& step : expr.steps) {
    const Value operand = evaluate(*step.operand, variables);
    // The line of the operand: a sum may span many.
    runtime_.line = step.operand->line;
    value = apply(runtime_, step.op, value, operand);
  }
  return value;
}

Value Interpreter::evaluate_logic(const LogicExpr& expr, Activation& variables) {
  Value value;
  for (const ExprPtr& operand : expr.operands) {
    value = evaluate(*operand, variables);
    if (truthy(value) == expr.is_or) break;
  }
  return value;
}

Value Interpreter::evaluate_compare(const CompareExpr& expr, Activation& variables) {
  const auto holds = [this](CompareExpr::Op op, const Value& a, const Value& b) {
    switch (op) {
      case CompareExpr::Op::kEq:
        return equals(runtime_, a, b);
      case CompareExpr::Op::kNe:
        return !equals(runtime_, a, b);
      case CompareExpr::Op::kLt:
        return less(runtime_, a, b);
      case CompareExpr::Op::kLe:
        return less_or_equal(runtime_, a, b);
      case CompareExpr::Op::kGt:
        return less(runtime_, b, a);
      case CompareExpr::Op::kGe:
        return less_or_equal(runtime_, b, a);
      case CompareExpr::Op::kIn:
        return contains(runtime_, b, a);
      case CompareExpr::Op::kNotIn:
        break;
    }
    return !contains(runtime_, b, a);
  };
  Value left = evaluate(*expr.first, variables);
  for (const CompareExpr::Step& step : expr.steps) {
    Value right = evaluate(*step.operand, variables);
    runtime_.line = step.operand->line;
    if (!holds(step.op, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_concat(const SequenceExpr& expr, Activation& variables) {
  std::string text;
  for (const ExprPtr& item : expr.items) {
    const Value value = evaluate(*item, variables);
    const std::string piece = str_of(runtime_, value);
    runtime_.check_text(text.size() + piece.size());
    text += piece;
  }
  return runtime_.string(std::move(text));
}

Value Interpreter::evaluate_conditional(const ConditionalExpr& expr, Activation& variables) {
  if (truthy(evaluate(*expr.test, variables))) return evaluate(*expr.if_true, variables);
  if (expr.if_false) return evaluate(*expr.if_false, variables);
  return runtime_.undefined(fmt::format(
      "the inline if-expression on line {} evaluated to false and no else section was defined.", expr.line));
}

Value Interpreter::evaluate_item(const ItemExpr& expr, Activation& variables) {
  const Value object = evaluate(*expr.object, variables);
  const Value key = evaluate(*expr.key, variables);
  runtime_.line = expr.line;
  return item_of(runtime_, object, key);
}

Value Interpreter::evaluate_slice(const SliceExpr& expr, Activation& variables) {
  const auto bound = [&](const ExprPtr& e) { return e ? evaluate(*e, variables) : Value(); };
  const Value object = evaluate(*expr.object, variables);
  const Value start = bound(expr.start);
  const Value stop = bound(expr.stop);
  const Value step = bound(expr.step);
  runtime_.line = expr.line;
  return slice_of(runtime_, object, start, stop, step);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments, Activation& variables) {
  Arguments result;
  result.positional = evaluate_all(arguments.positional, variables);
  for (const auto& [name, expr] : arguments.named)
    result.named.emplace_back(name, evaluate(*expr, variables));
  if (arguments.spread) {
    std::vector<Value> more = collect(runtime_, evaluate(*arguments.spread, variables));
    result.positional.insert(result.positional.end(), more.begin(), more.end());
  }
  if (arguments.spread_named) {
    const Value more = evaluate(*arguments.spread_named, variables);
    if (!more.is(Kind::kDict)) fail("argument after ** must be a dict, not '{}'", type_name(more));
    for (const Dict::Entry& entry : more.as<Dict>().entries()) {
      if (!entry.key.is_string()) fail("keywords must be strings, not '{}'", type_name(entry.key));
      for (const auto& [name, value] : result.named)
        if (name == entry.key.text()) fail("argument '{}' is given twice", name);
      runtime_.spend(result.named.size());
      result.named.emplace_back(std::string(entry.key.text()), entry.value);
    }
  }
  return result;
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  if (callee.is_undefined()) fail("{}", callee.as<Undefined>().message);
  if (!callee.is(Kind::kOpaque)) fail("'{}' object is not callable", type_name(callee));
  return callee.as<Opaque>().call(runtime_, arguments);
}

Value Interpreter::evaluate_call(const CallExpr& expr, Activation& variables, const Value& caller) {
  const Nesting nesting(runtime_);
  const Value callee = evaluate(*expr.callee, variables);
  Arguments arguments = evaluate_arguments(expr.arguments, variables);
  runtime_.line = expr.line;
  if (!caller.is_missing()) {
    if (!arguments.take("caller").is_missing()) fail("argument 'caller' is given twice");
    arguments.named.emplace_back("caller", caller);
  }
  return call(callee, arguments);
}

Value Interpreter::evaluate_filter(const FilterExpr& expr, Activation& variables, const Value& text) {
  const Nesting nesting(runtime_);
  runtime_.spend();
  Value operand = text;
  if (expr.operand && !text.is_missing()) {
    operand = evaluate_filter(static_cast<const FilterExpr&>(*expr.operand), variables, text);
  } else if (expr.operand) {
    operand = evaluate(*expr.operand, variables);
  }
  Arguments arguments = evaluate_arguments(expr.arguments, variables);
  runtime_.line = expr.line;
  if (expr.filter == nullptr) fail("no filter named '{}'", expr.name);
  return expr.filter->call(runtime_, operand, arguments);
}

Value Interpreter::evaluate_test(const TestExpr& expr, Activation& variables) {
  const Value operand = evaluate(*expr.operand, variables);
  Arguments arguments = evaluate_arguments(expr.arguments, variables);
  runtime_.line = expr.line;
  if (expr.test == nullptr) fail("no test named '{}'", expr.name);
  return Value::boolean(expr.test->call(runtime_, operand, arguments));
}

}  // namespace forebay::jinja
