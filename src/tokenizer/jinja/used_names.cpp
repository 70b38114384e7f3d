#include "tokenizer/jinja/used_names.h"

#include <utility>

#include "tokenizer/jinja/ast_walk.h"

namespace forebay::jinja {

namespace {

class UsedNames {
 public:
  explicit UsedNames(std::set<std::string> names) : wanted_(std::move(names)) {}

  std::set<std::string> take() { return std::move(used_); }

  void visit(const Block& block) {
    for (const auto& statement : block) visit(*statement);
  }

 private:
  void visit(const Expr& expr) {
    if (expr.kind == ExprKind::kName) {
      const std::string& name = static_cast<const NameExpr&>(expr).name;
      if (wanted_.contains(name)) used_.insert(name);
    }
    for_each_child(expr, [this](const Expr& child) { visit(child); });
  }

  void visit(const Target& target) {
    for (const Target& item : target.items) visit(item);
    if (target.attribute.empty()) wanted_.erase(target.name);
  }

  void visit(const MacroBody& macro) {
    for (const MacroBody::Parameter& parameter : macro.parameters) wanted_.erase(parameter.name);
    for (const MacroBody::Parameter& parameter : macro.parameters)
      if (parameter.default_value) visit(*parameter.default_value);
    visit(macro.body);
  }

  // In the order of Jinja's tree, where targets stand before values.
  void visit(const Statement& statement) {
    switch (statement.kind) {
      case StatementKind::kText:
      case StatementKind::kBreak:
      case StatementKind::kContinue:
        return;
      case StatementKind::kPrint:
        return visit(*static_cast<const PrintStatement&>(statement).value);
      case StatementKind::kSet:
        visit(static_cast<const SetStatement&>(statement).target);
        return visit(*static_cast<const SetStatement&>(statement).value);
      case StatementKind::kSetBlock: {
        const auto& set = static_cast<const SetBlockStatement&>(statement);
        visit(set.target);
        if (set.filter) visit(*set.filter);
        return visit(set.body);
      }
      case StatementKind::kIf: {
        const auto& condition = static_cast<const IfStatement&>(statement);
        for (const IfStatement::Branch& branch : condition.branches) {
          visit(*branch.test);
          visit(branch.body);
        }
        return visit(condition.otherwise);
      }
      case StatementKind::kFor: {
        const auto& loop = static_cast<const ForStatement&>(statement);
        visit(loop.target);
        visit(*loop.iterable);
        visit(loop.body);
        visit(loop.otherwise);
        if (loop.test) visit(*loop.test);
        return;
      }
      case StatementKind::kMacro:
        return visit(static_cast<const MacroStatement&>(statement).macro);
      case StatementKind::kCallBlock: {
        const auto& call_block = static_cast<const CallBlockStatement&>(statement);
        if (call_block.call) visit(*call_block.call);
        return visit(call_block.macro);
      }
      case StatementKind::kFilterBlock: {
        const auto& filter = static_cast<const FilterBlockStatement&>(statement);
        visit(filter.body);
        return visit(*filter.filter);
      }
      case StatementKind::kWith: {
        const auto& with = static_cast<const WithStatement&>(statement);
        for (const auto& [target, value] : with.bindings) visit(target);
        for (const auto& [target, value] : with.bindings) visit(*value);
        return visit(with.body);
      }
    }
  }

  std::set<std::string> wanted_, used_;
};

}  // namespace

std::set<std::string> used_before_assigned(const Block& block, std::set<std::string> names) {
  UsedNames visitor(std::move(names));
  visitor.visit(block);
  return visitor.take();
}

}  // namespace forebay::jinja
