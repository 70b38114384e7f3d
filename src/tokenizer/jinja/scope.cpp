#include "tokenizer/jinja/scope.h"

#include <set>
#include <string>

#include "tokenizer/jinja/ast_walk.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/symbols.h"
#include "tokenizer/jinja/tests.h"
#include "tokenizer/jinja/used_names.h"

namespace forebay::jinja {

namespace {

// ---- which names the statements of one frame read and assign ----

void collect(const Expr& expr, Symbols& frame) {
  if (expr.kind == ExprKind::kName) return frame.load(static_cast<const NameExpr&>(expr).name);
  for_each_child(expr, [&](const Expr& child) { collect(child, frame); });
}

void collect(const Target& target, Symbols& frame, bool as_parameter = false) {
  for (const Target& item : target.items) collect(item, frame, as_parameter);
  if (target.is_tuple) return;
  if (as_parameter) {
    frame.add_parameter(target.name);
  } else if (target.attribute.empty()) {
    frame.store(target.name);
  } else {
    frame.load(target.name);
  }
}

void collect(const Block& block, Symbols& frame);

void collect(const IfStatement& statement, Symbols& frame) {
  collect(*statement.branches[0].test, frame);
  Symbols body = frame.branch(), elifs = frame.branch(), otherwise = frame.branch();
  collect(statement.branches[0].body, body);
  for (size_t i = 1; i < statement.branches.size(); ++i) {
    collect(*statement.branches[i].test, elifs);
    Symbols elif = elifs.branch();
    collect(statement.branches[i].body, elif);
    elifs.merge({elif});
  }
  collect(statement.otherwise, otherwise);
  frame.merge({body, elifs, otherwise});
}

/// Stops at what has frames of its own: only what is evaluated before entering them counts.
void collect(const Statement& statement, Symbols& frame) {
  switch (statement.kind) {
    case StatementKind::kText:
    case StatementKind::kBreak:
    case StatementKind::kContinue:
      return;
    case StatementKind::kPrint:
      return collect(*static_cast<const PrintStatement&>(statement).value, frame);
    case StatementKind::kSet:
      collect(*static_cast<const SetStatement&>(statement).value, frame);
      return collect(static_cast<const SetStatement&>(statement).target, frame);
    case StatementKind::kSetBlock:
      return collect(static_cast<const SetBlockStatement&>(statement).target, frame);
    case StatementKind::kIf:
      return collect(static_cast<const IfStatement&>(statement), frame);
    case StatementKind::kFor:
      return collect(*static_cast<const ForStatement&>(statement).iterable, frame);
    case StatementKind::kMacro:
      return frame.store(static_cast<const MacroStatement&>(statement).macro.name);
    case StatementKind::kCallBlock:
      if (const auto& call = static_cast<const CallBlockStatement&>(statement).call) collect(*call, frame);
      return;
    case StatementKind::kFilterBlock:
      return collect(*static_cast<const FilterBlockStatement&>(statement).filter, frame);
    case StatementKind::kWith:
      for (const auto& [target, value] : static_cast<const WithStatement&>(statement).bindings)
        collect(*value, frame);
      return;
  }
}

void collect(const Block& block, Symbols& frame) {
  for (const auto& statement : block) collect(*statement, frame);
}

// ---- the slots ----

/// What holds for a statement because of those around it.
struct Surroundings {
  bool conditional = false;  // within a condition of the same frame
  bool in_loop = false;      // a loop of the same function
  bool in_for = false;       // any loop
};

class Binder {
 public:
  void bind(const Block& block, const Symbols& frame, const Surroundings& around) {
    for (const auto& statement : block) bind(*statement, frame, around);
  }

 private:
  void bind(Expr& expr, const Symbols& frame, bool conditional) {
    switch (expr.kind) {
      case ExprKind::kName: {
        auto& name = static_cast<NameExpr&>(expr);
        name.slot = frame.slot_of(*frame.find(name.name));
        return;
      }
      case ExprKind::kConditional:
        conditional = true;
        break;
      case ExprKind::kFilter: {
        auto& filter = static_cast<FilterExpr&>(expr);
        filter.filter = find_filter(filter.name);
        if (filter.filter == nullptr && !conditional) fail_at(expr.line, "no filter named '{}'", filter.name);
        break;
      }
      case ExprKind::kTest: {
        auto& test = static_cast<TestExpr&>(expr);
        test.test = find_test(test.name);
        if (test.test == nullptr && !conditional) fail_at(expr.line, "no test named '{}'", test.name);
        break;
      }
      default:
        break;
    }
    for_each_child(expr, [&](Expr& child) { bind(child, frame, conditional); });
  }

  void bind(Target& target, const Symbols& frame, bool in_for) {
    for (Target& item : target.items) bind(item, frame, in_for);
    if (target.is_tuple) return;
    if (in_for && target.attribute.empty() && target.name == "loop")
      fail_at(target.line, "the variable 'loop' of a for loop cannot be assigned");
    target.slot = frame.slot_of(*frame.find(target.name));
  }

  void bind(Statement& statement, const Symbols& frame, const Surroundings& around) {
    switch (statement.kind) {
      case StatementKind::kText:
        return;
      case StatementKind::kPrint:
        return bind(*static_cast<PrintStatement&>(statement).value, frame, around.conditional);
      case StatementKind::kSet: {
        auto& set = static_cast<SetStatement&>(statement);
        bind(*set.value, frame, around.conditional);
        return bind(set.target, frame, around.in_for);
      }
      case StatementKind::kSetBlock:
        return bind_set_block(static_cast<SetBlockStatement&>(statement), frame, around);
      case StatementKind::kIf:
        return bind_if(static_cast<IfStatement&>(statement), frame, around);
      case StatementKind::kFor:
        return bind_for(static_cast<ForStatement&>(statement), frame, around);
      case StatementKind::kMacro: {
        auto& macro = static_cast<MacroStatement&>(statement);
        bind_macro(macro.macro, macro.line, frame, around);
        macro.slot = frame.slot_of(*frame.find(macro.macro.name));
        return;
      }
      case StatementKind::kCallBlock: {
        auto& call_block = static_cast<CallBlockStatement&>(statement);
        bind_macro(call_block.macro, call_block.line, frame, around);
        if (call_block.call) bind(*call_block.call, frame, around.conditional);
        return;
      }
      case StatementKind::kFilterBlock:
        return bind_filter_block(static_cast<FilterBlockStatement&>(statement), frame, around);
      case StatementKind::kWith:
        return bind_with(static_cast<WithStatement&>(statement), frame, around);
      case StatementKind::kBreak:
      case StatementKind::kContinue:
        if (!around.in_loop)
          fail_at(statement.line, "'{}' outside of a loop",
                  statement.kind == StatementKind::kBreak ? "break" : "continue");
        return;
    }
  }

  static Surroundings within_frame(const Surroundings& around) {
    return {false, around.in_loop, around.in_for};
  }

  void bind_if(IfStatement& statement, const Symbols& frame, Surroundings around) {
    around.conditional = true;
    for (IfStatement::Branch& branch : statement.branches) {
      bind(*branch.test, frame, true);
      bind(branch.body, frame, around);
    }
    bind(statement.otherwise, frame, around);
  }

  void bind_set_block(SetBlockStatement& statement, const Symbols& frame, const Surroundings& around) {
    Symbols inner(&frame, frame.function());
    collect(statement.body, inner);
    if (statement.filter) collect(*statement.filter, inner);
    statement.entry = inner.entry();
    bind(statement.body, inner, within_frame(around));
    if (statement.filter) bind(*statement.filter, inner, false);
    bind(statement.target, frame, around.in_for);
  }

  void bind_filter_block(FilterBlockStatement& statement, const Symbols& frame, const Surroundings& around) {
    Symbols inner(&frame, frame.function());
    collect(statement.body, inner);
    collect(*statement.filter, inner);
    statement.entry = inner.entry();
    bind(statement.body, inner, within_frame(around));
    bind(*statement.filter, inner, false);
  }

  void bind_with(WithStatement& statement, const Symbols& frame, const Surroundings& around) {
    Symbols inner(&frame, frame.function());
    for (const auto& [target, value] : statement.bindings) collect(target, inner, true);
    collect(statement.body, inner);
    statement.entry = inner.entry();
    for (auto& [target, value] : statement.bindings) {
      bind(*value, frame, around.conditional);
      bind(target, inner, false);
    }
    bind(statement.body, inner, within_frame(around));
  }

  void bind_for(ForStatement& statement, const Symbols& frame, const Surroundings& around) {
    bind(*statement.iterable, frame, around.conditional);
    if (statement.test) bind_loop_test(statement, frame);

    FunctionScope own{&frame.function(), {}};
    FunctionScope& function = statement.recursive ? own : frame.function();
    Symbols body(&frame, function);
    statement.loop = body.slot_of(body.add_parameter("loop"));
    collect(statement.target, body, true);
    collect(statement.body, body);
    statement.body_entry = body.entry();
    bind(statement.target, body, true);
    bind(statement.body, body, {false, true, true});

    Symbols otherwise(&frame, function);
    collect(statement.otherwise, otherwise);
    statement.otherwise_entry = otherwise.entry();
    bind(statement.otherwise, otherwise, {false, around.in_loop && !statement.recursive, true});
    statement.n_slots = own.n_slots();
  }

  void bind_loop_test(ForStatement& statement, const Symbols& frame) {
    FunctionScope function{&frame.function(), {}};
    Symbols symbols(&frame, function);
    statement.test_target = statement.target;
    collect(statement.test_target, symbols, true);
    collect(*statement.test, symbols);
    statement.test_entry = symbols.entry();
    bind(statement.test_target, symbols, true);
    bind(*statement.test, symbols, false);
    statement.n_test_slots = function.n_slots();
  }

  void bind_macro(MacroBody& macro, int line, const Symbols& frame, const Surroundings& around) {
    FunctionScope function{&frame.function(), {}};
    Symbols symbols(&frame, function);
    for (MacroBody::Parameter& parameter : macro.parameters)
      parameter.index = symbols.add_parameter(parameter.name).index;
    for (const MacroBody::Parameter& parameter : macro.parameters)
      if (parameter.default_value) collect(*parameter.default_value, symbols);
    collect(macro.body, symbols);
    add_special_parameters(macro, line, symbols);
    macro.entry = symbols.entry();
    for (const MacroBody::Parameter& parameter : macro.parameters)
      if (parameter.default_value) bind(*parameter.default_value, symbols, false);
    bind(macro.body, symbols, {false, false, around.in_for});
    macro.n_slots = function.n_slots();
  }

  /// A macro takes a caller, or arguments beyond its parameters, if its body mentions them.
  static void add_special_parameters(MacroBody& macro, int line, Symbols& symbols) {
    const std::set<std::string> used = used_before_assigned(macro.body, {"caller", "kwargs", "varargs"});
    const auto parameter = [&](const std::string& name) -> const MacroBody::Parameter* {
      for (const MacroBody::Parameter& candidate : macro.parameters)
        if (candidate.name == name) return &candidate;
      return nullptr;
    };
    if (used.contains("caller")) {
      const MacroBody::Parameter* own = parameter("caller");
      if (own != nullptr && !own->default_value) fail_at(line, "a parameter 'caller' must have a default");
      if (own == nullptr) macro.caller = symbols.add_parameter("caller").index;
    }
    if (used.contains("kwargs") && parameter("kwargs") == nullptr)
      macro.kwargs = symbols.add_parameter("kwargs").index;
    if (used.contains("varargs") && parameter("varargs") == nullptr)
      macro.varargs = symbols.add_parameter("varargs").index;
  }
};

}  // namespace

void resolve_names(Template& result) {
  FunctionScope function;
  Symbols symbols(nullptr, function);
  collect(result.body, symbols);
  result.entry = symbols.entry();
  Binder().bind(result.body, symbols, {});
  result.n_slots = function.n_slots();
}

}  // namespace forebay::jinja
