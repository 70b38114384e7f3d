#include "tokenizer/jinja/objects.h"

#include "tokenizer/jinja/repr.h"

namespace forebay::jinja {

Value Function::call(Runtime& runtime, Arguments& arguments) {
  if (!call_) return {};
  return call_(runtime, arguments);
}

std::string Namespace::repr(Runtime& runtime) const {
  return "<Namespace " + repr_of(runtime, attributes_) + ">";
}

Value Namespace::attribute(Runtime&, std::string_view name) {
  const Value* found = attributes_->find(name);
  return found != nullptr ? *found : Value();
}

void Namespace::set(Runtime& runtime, std::string_view name, Value value) {
  attributes_->set(runtime, runtime.string(std::string(name)), std::move(value));
}

Value Cycler::attribute(Runtime& runtime, std::string_view name) {
  const Ref<Cycler> self(this);
  if (name == "current") return items_[position_];
  if (name == "pos") return Value::integer(static_cast<Int>(position_));
  if (name == "items") return runtime.tuple(items_);
  if (name == "next") {
    return runtime.heap().make<Function>("next", [self](Runtime&, Arguments& arguments) {
      bind("next", arguments, {}, 0);
      const Value item = self->items_[self->position_];
      self->position_ = (self->position_ + 1) % self->items_.size();
      return item;
    });
  }
  if (name == "reset") {
    return runtime.heap().make<Function>("reset", [self](Runtime&, Arguments& arguments) {
      bind("reset", arguments, {}, 0);
      self->position_ = 0;
      return Value::none();
    });
  }
  return {};
}

Value Joiner::call(Runtime& runtime, Arguments& arguments) {
  bind("joiner", arguments, {}, 0);
  if (std::exchange(used_, true)) return separator_;
  return runtime.string({});
}

Value Joiner::attribute(Runtime&, std::string_view name) {
  if (name == "sep") return separator_;
  if (name == "used") return Value::boolean(used_);
  return {};
}

}  // namespace forebay::jinja
