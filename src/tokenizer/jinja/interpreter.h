/// Runs a template: statements in interpreter.cpp, expressions in evaluate.cpp.
///
/// Confined to one thread; lives for one render.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

/// The variables of a function that is running, or that macros still refer to.
class Activation : public Object {
 public:
  Activation(Ref<Activation> outer, int n_slots)
      : slots(static_cast<size_t>(n_slots)), outer_(std::move(outer)) {}
  void forget() override {
    slots.clear();
    outer_ = {};
  }
  Value& at(const Slot& slot) {
    Activation* activation = this;
    for (int i = 0; i < slot.hops; ++i) activation = activation->outer_.get();
    return activation->slots[static_cast<size_t>(slot.index)];
  }

  std::vector<Value> slots;

 private:
  Ref<Activation> outer_;
};

class Interpreter {
 public:
  Interpreter(Runtime& runtime, Ref<Dict> context) : runtime_(runtime), context_(std::move(context)) {}

  std::string run(const Template& source);

  Value call_macro(const MacroBody& macro, const Ref<Activation>& outer, Arguments& arguments);

 private:
  friend class Capture;
  friend class TestedItems;
  enum class Flow { kNext, kBreak, kContinue };

  // ---- statements ----
  Flow run(const Block& block, Activation& variables);
  Flow run(const Statement& statement, Activation& variables);
  Flow run_if(const IfStatement& statement, Activation& variables);
  Flow run_for(const ForStatement& statement, Activation& variables);
  Flow run_set_block(const SetBlockStatement& statement, Activation& variables);
  Flow run_filter_block(const FilterBlockStatement& statement, Activation& variables);
  Flow run_with(const WithStatement& statement, Activation& variables);
  void run_call_block(const CallBlockStatement& statement, Activation& variables);

  /// Walks `items` in `variables`; the loop's test sees `around`, the function that the loop stands in.
  Flow run_loop(const ForStatement& statement, const Value& items, Activation& around, Activation& variables,
                int depth0);
  Value recurse(const ForStatement& statement, const Value& items, const Ref<Activation>& around, int depth0);

  void enter(const FrameEntry& entry, Activation& variables);
  static void leave(const FrameEntry& entry, Activation& variables);
  void assign(const Target& target, const Value& value, Activation& variables);
  Value value_of(const Target& target, Activation& variables);
  Value look_up(const std::string& name);

  void emit(std::string_view text);
  void print(const Value& value);
  void emit_string(const Value& value);

  // ---- expressions ----
  Value evaluate(const Expr& expr, Activation& variables);
  Value evaluate_inner(const Expr& expr, Activation& variables);
  Value evaluate_name(const NameExpr& expr, Activation& variables);
  Value evaluate_dict(const DictExpr& expr, Activation& variables);
  Value evaluate_unary(const UnaryExpr& expr, Activation& variables);
  Value evaluate_arithmetic(const ArithmeticExpr& expr, Activation& variables);
  Value evaluate_logic(const LogicExpr& expr, Activation& variables);
  Value evaluate_compare(const CompareExpr& expr, Activation& variables);
  Value evaluate_concat(const SequenceExpr& expr, Activation& variables);
  Value evaluate_conditional(const ConditionalExpr& expr, Activation& variables);
  Value evaluate_item(const ItemExpr& expr, Activation& variables);
  Value evaluate_slice(const SliceExpr& expr, Activation& variables);
  Value evaluate_call(const CallExpr& expr, Activation& variables, const Value& caller);
  /// `text` is what a filter chain without an operand begins with.
  Value evaluate_filter(const FilterExpr& expr, Activation& variables, const Value& text);
  Value evaluate_test(const TestExpr& expr, Activation& variables);
  std::vector<Value> evaluate_all(const std::vector<ExprPtr>& exprs, Activation& variables);
  Arguments evaluate_arguments(const CallArguments& arguments, Activation& variables);
  Value call(const Value& callee, Arguments& arguments);

  Runtime& runtime_;
  Ref<Dict> context_;
  std::string out_;           // of the innermost capture
  uint64_t n_out_bytes_ = 0;  // of all of them
};

/// While it lives, output goes to it.
class Capture {
 public:
  explicit Capture(Interpreter& interpreter);
  Capture(const Capture&) = delete;
  ~Capture();
  /// What was put out since, as a value.
  Value take();

 private:
  Interpreter& interpreter_;
  std::string outer_;
};

/// A macro, or the body of a call block, with the variables around it.
class Macro : public Opaque {
 public:
  Macro(Interpreter& interpreter, const MacroBody& body, Ref<Activation> outer)
      : interpreter_(interpreter), body_(body), outer_(std::move(outer)) {}
  void forget() override { outer_ = {}; }
  std::string_view type_name() const override { return "Macro"; }
  std::string repr(Runtime& runtime) const override;
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override;
  Value attribute(Runtime& runtime, std::string_view name) override;

 private:
  Interpreter& interpreter_;
  const MacroBody& body_;
  Ref<Activation> outer_;
};

}  // namespace forebay::jinja
