#include "tokenizer/jinja/interpreter.h"

#include <utility>

#include "tokenizer/jinja/globals.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/loop.h"
#include "tokenizer/jinja/objects.h"
#include "tokenizer/jinja/repr.h"

namespace forebay::jinja {

// ---- output ----

Capture::Capture(Interpreter& interpreter)
    : interpreter_(interpreter), outer_(std::exchange(interpreter.out_, std::string())) {}

Capture::~Capture() {
  interpreter_.n_out_bytes_ -= interpreter_.out_.size();
  interpreter_.out_ = std::move(outer_);
}

Value Capture::take() {
  interpreter_.n_out_bytes_ -= interpreter_.out_.size();
  return interpreter_.runtime_.string(std::exchange(interpreter_.out_, std::string()));
}

void Interpreter::emit(std::string_view text) {
  n_out_bytes_ += text.size();
  if (n_out_bytes_ > runtime_.limits().output_bytes)
    fail("output is over the limit of {} bytes", runtime_.limits().output_bytes);
  runtime_.spend_bytes(text.size());
  out_ += text;
}

void Interpreter::print(const Value& value) {
  if (value.is_string()) return emit(value.text());
  if (!value.is_undefined()) emit(str_of(runtime_, value));
}

/// What a tag puts out by itself is not made a string first.
void Interpreter::emit_string(const Value& value) {
  if (!value.is_string()) fail("the tag's output is '{}', expected str", type_name(value));
  emit(value.text());
}

// ---- frames and variables ----

Value Interpreter::look_up(const std::string& name) {
  if (const Value* found = context_->find(name)) return *found;
  return make_global(runtime_, name);
}

void Interpreter::enter(const FrameEntry& entry, Activation& variables) {
  for (const FrameEntry::Load& load : entry.loads) {
    runtime_.spend();
    Value value;
    switch (load.from) {
      case FrameEntry::Load::From::kNothing:
        break;
      case FrameEntry::Load::From::kContext:
        value = look_up(load.name);
        break;
      case FrameEntry::Load::From::kOuter:
        value = variables.at(load.outer);
        break;
    }
    variables.slots[static_cast<size_t>(load.index)] = std::move(value);
  }
}

void Interpreter::leave(const FrameEntry& entry, Activation& variables) {
  for (const int index : entry.owned) variables.slots[static_cast<size_t>(index)] = Value();
}

void Interpreter::assign(const Target& target, const Value& value, Activation& variables) {
  if (target.is_tuple) {
    const Nesting nesting(runtime_);
    const std::vector<Value> items = collect(runtime_, value);
    if (items.size() != target.items.size())
      fail("cannot unpack {} values into {} names", items.size(), target.items.size());
    for (size_t i = 0; i < items.size(); ++i) assign(target.items[i], items[i], variables);
    return;
  }
  if (target.attribute.empty()) {
    variables.at(target.slot) = value;
    return;
  }
  auto* object = opaque_as<Namespace>(variables.at(target.slot));
  if (object == nullptr) fail("cannot assign attribute on non-namespace object '{}'", target.name);
  object->set(runtime_, target.attribute, value);
}

/// What was assigned to it.
Value Interpreter::value_of(const Target& target, Activation& variables) {
  if (!target.is_tuple) return variables.at(target.slot);
  std::vector<Value> items;
  for (const Target& item : target.items) items.push_back(value_of(item, variables));
  return runtime_.tuple(std::move(items));
}

// ---- statements ----

std::string Interpreter::run(const Template& source) {
  const Ref<Activation> variables = runtime_.heap().make<Activation>(Ref<Activation>(), source.n_slots);
  enter(source.entry, *variables);
  run(source.body, *variables);
  return std::move(out_);
}

Interpreter::Flow Interpreter::run(const Block& block, Activation& variables) {
  const Nesting nesting(runtime_);
  for (const auto& statement : block) {
    runtime_.spend();
    runtime_.line = statement->line;
    if (const Flow flow = run(*statement, variables); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const Statement& statement, Activation& variables) {
  switch (statement.kind) {
    case StatementKind::kText:
      emit(static_cast<const TextStatement&>(statement).text);
      return Flow::kNext;
    case StatementKind::kPrint:
      print(evaluate(*static_cast<const PrintStatement&>(statement).value, variables));
      return Flow::kNext;
    case StatementKind::kSet: {
      const auto& set = static_cast<const SetStatement&>(statement);
      const Value value = evaluate(*set.value, variables);
      runtime_.line = statement.line;
      assign(set.target, value, variables);
      return Flow::kNext;
    }
    case StatementKind::kSetBlock:
      return run_set_block(static_cast<const SetBlockStatement&>(statement), variables);
    case StatementKind::kIf:
      return run_if(static_cast<const IfStatement&>(statement), variables);
    case StatementKind::kFor:
      return run_for(static_cast<const ForStatement&>(statement), variables);
    case StatementKind::kMacro: {
      const auto& macro = static_cast<const MacroStatement&>(statement);
      variables.at(macro.slot) = runtime_.heap().make<Macro>(*this, macro.macro, Ref(&variables));
      return Flow::kNext;
    }
    case StatementKind::kCallBlock:
      run_call_block(static_cast<const CallBlockStatement&>(statement), variables);
      return Flow::kNext;
    case StatementKind::kFilterBlock:
      return run_filter_block(static_cast<const FilterBlockStatement&>(statement), variables);
    case StatementKind::kWith:
      return run_with(static_cast<const WithStatement&>(statement), variables);
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_if(const IfStatement& statement, Activation& variables) {
  for (const IfStatement::Branch& branch : statement.branches)
    if (truthy(evaluate(*branch.test, variables))) return run(branch.body, variables);
  return run(statement.otherwise, variables);
}

/// The items of a loop that pass its test.
class TestedItems : public Iterator {
 public:
  TestedItems(Interpreter& interpreter, const ForStatement& statement, Ref<Iterator> source,
              Ref<Activation> variables)
      : interpreter_(interpreter),
        statement_(statement),
        source_(std::move(source)),
        variables_(std::move(variables)) {}
  void forget() override {
    source_ = {};
    variables_ = {};
  }
  bool next(Runtime& runtime, Value& item) override {
    if (!source_ || running_) return false;
    running_ = true;
    if (!std::exchange(entered_, true)) interpreter_.enter(statement_.test_entry, *variables_);
    bool found = false;
    while (!found && source_->next(runtime, item)) {
      runtime.spend();
      interpreter_.assign(statement_.test_target, item, *variables_);
      found = truthy(interpreter_.evaluate(*statement_.test, *variables_));
    }
    if (found) item = interpreter_.value_of(statement_.test_target, *variables_);
    running_ = false;
    return found;
  }

 private:
  Interpreter& interpreter_;
  const ForStatement& statement_;
  Ref<Iterator> source_;
  Ref<Activation> variables_;
  bool entered_ = false;
  bool running_ = false;
};

Interpreter::Flow Interpreter::run_for(const ForStatement& statement, Activation& variables) {
  const Value items = evaluate(*statement.iterable, variables);
  runtime_.line = statement.line;
  if (!statement.recursive) return run_loop(statement, items, variables, variables, 0);
  emit_string(recurse(statement, items, Ref(&variables), 0));
  return Flow::kNext;
}

Value Interpreter::recurse(const ForStatement& statement, const Value& items, const Ref<Activation>& around,
                           int depth0) {
  const Nesting nesting(runtime_);
  const Ref<Activation> own = runtime_.heap().make<Activation>(around, statement.n_slots);
  Capture capture(*this);
  run_loop(statement, items, *around, *own, depth0);
  return capture.take();
}

Interpreter::Flow Interpreter::run_loop(const ForStatement& statement, const Value& items, Activation& around,
                                        Activation& variables, int depth0) {
  Value walked = items;
  Ref<Iterator> iterator = iterate(runtime_, items);
  if (statement.test) {
    Ref<Activation> own = runtime_.heap().make<Activation>(Ref(&around), statement.n_test_slots);
    iterator = Ref<Iterator>(
        runtime_.heap().make<TestedItems>(*this, statement, std::move(iterator), std::move(own)).get());
    walked = iterator;
  }
  Loop::Recurse recursion;
  if (statement.recursive) {
    recursion = [this, &statement, outer = Ref(&around)](Runtime&, const Value& inner_items, int depth) {
      return recurse(statement, inner_items, outer, depth);
    };
  }
  const Ref<Loop> loop =
      runtime_.heap().make<Loop>(walked, std::move(iterator), std::move(recursion), depth0);
  // As in Jinja, `else` runs unless some pass reached the end of the body.
  bool any_completed = false;
  for (Value item; loop->advance(runtime_, item);) {
    runtime_.spend();
    assign(statement.target, item, variables);
    variables.at(statement.loop) = loop;
    enter(statement.body_entry, variables);
    const Flow flow = run(statement.body, variables);
    runtime_.line = statement.line;
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNext) any_completed = true;
  }
  leave(statement.body_entry, variables);
  if (any_completed || statement.otherwise.empty()) return Flow::kNext;
  enter(statement.otherwise_entry, variables);
  const Flow flow = run(statement.otherwise, variables);
  leave(statement.otherwise_entry, variables);
  return flow;
}

Interpreter::Flow Interpreter::run_set_block(const SetBlockStatement& statement, Activation& variables) {
  enter(statement.entry, variables);
  Value text;
  {
    Capture capture(*this);
    if (const Flow flow = run(statement.body, variables); flow != Flow::kNext) return flow;
    text = capture.take();
  }
  if (statement.filter)
    text = evaluate_filter(static_cast<const FilterExpr&>(*statement.filter), variables, text);
  runtime_.line = statement.line;
  assign(statement.target, text, variables);
  leave(statement.entry, variables);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_filter_block(const FilterBlockStatement& statement,
                                                Activation& variables) {
  enter(statement.entry, variables);
  Value text;
  {
    Capture capture(*this);
    if (const Flow flow = run(statement.body, variables); flow != Flow::kNext) return flow;
    text = capture.take();
  }
  emit_string(evaluate_filter(static_cast<const FilterExpr&>(*statement.filter), variables, text));
  leave(statement.entry, variables);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_with(const WithStatement& statement, Activation& variables) {
  enter(statement.entry, variables);
  for (const auto& [target, value] : statement.bindings)
    assign(target, evaluate(*value, variables), variables);
  const Flow flow = run(statement.body, variables);
  leave(statement.entry, variables);
  return flow;
}

void Interpreter::run_call_block(const CallBlockStatement& statement, Activation& variables) {
  const Value caller = runtime_.heap().make<Macro>(*this, statement.macro, Ref(&variables));
  if (statement.call)
    return print(evaluate_call(static_cast<const CallExpr&>(*statement.call), variables, caller));
  Arguments none;
  emit_string(call(caller, none));
}

// ---- macros ----

std::string Macro::repr(Runtime&) const {
  return body_.name.empty() ? "<Macro anonymous>" : "<Macro " + quoted(body_.name) + ">";
}

Value Macro::call(Runtime&, Arguments& arguments) {
  if (!outer_) return {};
  return interpreter_.call_macro(body_, outer_, arguments);
}

Value Macro::attribute(Runtime& runtime, std::string_view name) {
  if (name == "name") return body_.name.empty() ? Value::none() : runtime.string(body_.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const MacroBody::Parameter& parameter : body_.parameters)
      names.push_back(runtime.string(parameter.name));
    return runtime.tuple(std::move(names));
  }
  if (name == "catch_kwargs") return Value::boolean(body_.kwargs >= 0);
  if (name == "catch_varargs") return Value::boolean(body_.varargs >= 0);
  if (name == "caller") return Value::boolean(body_.caller >= 0);
  return {};
}

Value Interpreter::call_macro(const MacroBody& macro, const Ref<Activation>& outer, Arguments& arguments) {
  const Nesting nesting(runtime_);
  const Ref<Activation> own = runtime_.heap().make<Activation>(outer, macro.n_slots);
  const auto slot = [&](int index) -> Value& { return own->slots[static_cast<size_t>(index)]; };
  const size_t n_parameters = macro.parameters.size();
  std::vector<Value>& given = arguments.positional;
  const size_t n_given = std::min(given.size(), n_parameters);
  for (size_t i = 0; i < n_given; ++i) slot(macro.parameters[i].index) = given[i];
  for (size_t i = n_given; i < n_parameters; ++i)
    slot(macro.parameters[i].index) = arguments.take(macro.parameters[i].name);
  if (macro.caller >= 0) {
    Value caller = arguments.take("caller");
    slot(macro.caller) = caller.is_absent() ? runtime_.undefined("No caller defined") : caller;
  }
  if (macro.kwargs >= 0) {
    const Ref<Dict> rest = runtime_.dict();
    for (const auto& [name, value] : arguments.named) rest->set(runtime_, runtime_.string(name), value);
    slot(macro.kwargs) = rest;
  } else if (!arguments.named.empty()) {
    fail("macro '{}' takes no keyword argument '{}'", macro.name, arguments.named[0].first);
  }
  if (macro.varargs >= 0) {
    slot(macro.varargs) = runtime_.tuple({given.begin() + static_cast<std::ptrdiff_t>(n_given), given.end()});
  } else if (given.size() > n_parameters) {
    fail("macro '{}' takes not more than {} argument(s), got {}", macro.name, n_parameters, given.size());
  }
  enter(macro.entry, *own);
  for (const MacroBody::Parameter& parameter : macro.parameters) {
    if (!slot(parameter.index).is_missing()) continue;
    Value value = parameter.default_value
                      ? evaluate(*parameter.default_value, *own)
                      : runtime_.undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    slot(parameter.index) = std::move(value);
  }
  Capture capture(*this);
  run(macro.body, *own);
  return capture.take();
}

}  // namespace forebay::jinja
