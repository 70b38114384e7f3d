/// The names of one frame while a template is being resolved (scope.h).
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja/ast.h"

namespace forebay::jinja {

/// A function that is being resolved, and its variables.
struct FunctionScope {
  const FunctionScope* outer = nullptr;
  // By the depth of the frame that has them: frames side by side share.
  std::map<std::pair<int, std::string>, int> indices;

  int n_slots() const { return static_cast<int>(indices.size()); }
};

struct Variable {
  FunctionScope* function;
  int index;
  auto operator<=>(const Variable&) const = default;
};

class Symbols {
 public:
  Symbols(const Symbols* parent, FunctionScope& function)
      : parent_(parent), function_(&function), level_(parent == nullptr ? 0 : parent->level_ + 1) {}

  FunctionScope& function() const { return *function_; }

  /// The same frame within a branch of a condition: what it adds stays in the branch, until it is merged.
  Symbols branch() const;
  /// Takes over what the branches of one condition added. A name that only some of them assign has its outer
  /// value where another one was taken.
  void merge(const std::vector<Symbols>& branches);

  std::optional<Variable> find(const std::string& name) const;

  // What the statements of the frame do with a name, in their order.
  void load(const std::string& name);
  void store(const std::string& name);
  /// Gets its value from the interpreter: a loop's target, a macro's argument.
  Variable add_parameter(const std::string& name);

  FrameEntry entry() const;

  /// Where `variable` is, seen from this frame's function.
  Slot slot_of(const Variable& variable) const;

 private:
  struct Load {
    enum class From { kParameter, kNothing, kContext, kOuter } from;
    std::string name;
    std::optional<Variable> outer;
  };

  Variable define(const std::string& name, Load load);
  const Variable* find_here(const std::string& name) const;
  bool stores(const std::string& name) const;

  const Symbols* base_ = nullptr;  // of a branch
  const Symbols* parent_;
  FunctionScope* function_;
  int level_;
  std::map<std::string, Variable> variables_;
  std::map<Variable, Load> loads_;
  std::set<std::string> stores_;
};

}  // namespace forebay::jinja
