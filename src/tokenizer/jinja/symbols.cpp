#include "tokenizer/jinja/symbols.h"

namespace forebay::jinja {

Symbols Symbols::branch() const {
  Symbols branch(parent_, *function_);
  branch.base_ = this;
  return branch;
}

const Variable* Symbols::find_here(const std::string& name) const {
  for (const Symbols* symbols = this; symbols != nullptr; symbols = symbols->base_)
    if (const auto found = symbols->variables_.find(name); found != symbols->variables_.end())
      return &found->second;
  return nullptr;
}

bool Symbols::stores(const std::string& name) const {
  return stores_.contains(name) || (base_ != nullptr && base_->stores(name));
}

std::optional<Variable> Symbols::find(const std::string& name) const {
  for (const Symbols* frame = this; frame != nullptr; frame = frame->parent_)
    if (const Variable* found = frame->find_here(name)) return *found;
  return std::nullopt;
}

Variable Symbols::define(const std::string& name, Load load) {
  const auto index = function_->indices.try_emplace({level_, name}, function_->n_slots()).first->second;
  const Variable variable{function_, index};
  variables_.insert_or_assign(name, variable);
  loads_.insert_or_assign(variable, std::move(load));
  return variable;
}

void Symbols::load(const std::string& name) {
  if (!find(name)) define(name, {Load::From::kContext, name, std::nullopt});
}

void Symbols::store(const std::string& name) {
  stores_.insert(name);
  if (find_here(name) != nullptr) return;
  if (const std::optional<Variable> outer = parent_ != nullptr ? parent_->find(name) : std::nullopt) {
    define(name, {Load::From::kOuter, name, outer});
  } else {
    define(name, {Load::From::kNothing, name, std::nullopt});
  }
}

Variable Symbols::add_parameter(const std::string& name) {
  stores_.insert(name);
  return define(name, {Load::From::kParameter, name, std::nullopt});
}

void Symbols::merge(const std::vector<Symbols>& branches) {
  std::set<std::string> assigned;
  for (const Symbols& branch : branches)
    for (const std::string& name : branch.stores_)
      if (!stores(name)) assigned.insert(name);
  for (const Symbols& branch : branches) {
    for (const auto& [name, variable] : branch.variables_) variables_.insert_or_assign(name, variable);
    for (const auto& [variable, load] : branch.loads_) loads_.insert_or_assign(variable, load);
    stores_.insert(branch.stores_.begin(), branch.stores_.end());
  }
  for (const std::string& name : assigned) {
    const std::optional<Variable> outer = parent_ != nullptr ? parent_->find(name) : std::nullopt;
    loads_.insert_or_assign(*find(name),
                            Load{outer ? Load::From::kOuter : Load::From::kContext, name, outer});
  }
}

FrameEntry Symbols::entry() const {
  FrameEntry entry;
  for (const auto& [variable, load] : loads_) {
    if (variable.function != function_) continue;
    entry.owned.push_back(variable.index);
    switch (load.from) {
      case Load::From::kParameter:
        break;
      case Load::From::kNothing:
        entry.loads.push_back({variable.index, FrameEntry::Load::From::kNothing, {}, {}});
        break;
      case Load::From::kContext:
        entry.loads.push_back({variable.index, FrameEntry::Load::From::kContext, load.name, {}});
        break;
      case Load::From::kOuter:
        entry.loads.push_back({variable.index, FrameEntry::Load::From::kOuter, {}, slot_of(*load.outer)});
        break;
    }
  }
  return entry;
}

Slot Symbols::slot_of(const Variable& variable) const {
  Slot slot{0, variable.index};
  for (const FunctionScope* function = function_; function != variable.function; function = function->outer)
    ++slot.hops;
  return slot;
}

}  // namespace forebay::jinja
