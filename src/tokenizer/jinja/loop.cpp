#include "tokenizer/jinja/loop.h"

#include <utility>

#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/objects.h"

namespace forebay::jinja {

void Loop::forget() {
  items_ = previous_ = current_ = after_ = last_changed_ = {};
  iterator_ = {};
  recurse_ = nullptr;
}

std::string Loop::repr(Runtime& runtime) const {
  return fmt::format("<LoopContext {}/{}>", index0_ + 1, const_cast<Loop*>(this)->length(runtime));
}

bool Loop::advance(Runtime& runtime, Value& item) {
  Value next = std::exchange(after_, {});
  if (next.is_missing() && (!iterator_ || !iterator_->next(runtime, next))) return false;
  ++index0_;
  previous_ = std::exchange(current_, next);
  item = std::move(next);
  return true;
}

const Value& Loop::peek(Runtime& runtime) {
  if (after_.is_missing() && iterator_) {
    Value next;
    if (iterator_->next(runtime, next)) after_ = std::move(next);
  }
  return after_;
}

Int Loop::length(Runtime& runtime) {
  if (length_) return *length_;
  if (const std::optional<Int> known = length_of(items_)) {
    length_ = known;
  } else if (iterator_) {
    // It cannot be known without walking the rest, which is then kept.
    const Value rest = runtime.list(collect(runtime, *iterator_));
    const Int n_rest = *length_of(rest);
    iterator_ = iterate(runtime, rest);
    length_ = n_rest + index0_ + 1 + (after_.is_missing() ? 0 : 1);
  }
  return length_.value_or(0);
}

Value Loop::call(Runtime& runtime, Arguments& arguments) {
  const std::vector<Value> bound = bind("loop", arguments, {"iterable"}, 1);
  if (!recurse_) fail("the loop must have the 'recursive' marker to be called recursively");
  return recurse_(runtime, bound[0], depth0_ + 1);
}

Value Loop::cycle(Runtime&, const Arguments& arguments) const {
  if (!arguments.named.empty() || arguments.positional.empty())
    fail("loop.cycle: no items for cycling given");
  return arguments.positional[static_cast<size_t>(index0_ % static_cast<Int>(arguments.positional.size()))];
}

Value Loop::changed(Runtime& runtime, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("loop.changed takes no argument '{}'", arguments.named[0].first);
  Value values = runtime.tuple(arguments.positional);
  if (!last_changed_.is_missing() && equals(runtime, last_changed_, values)) return Value::boolean(false);
  last_changed_ = std::move(values);
  return Value::boolean(true);
}

Value Loop::attribute(Runtime& runtime, std::string_view name) {
  const Int index = index0_ + 1;
  if (name == "index") return Value::integer(index);
  if (name == "index0") return Value::integer(index0_);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(peek(runtime).is_missing());
  if (name == "length") return Value::integer(length(runtime));
  if (name == "revindex") return Value::integer(length(runtime) - index0_);
  if (name == "revindex0") return Value::integer(length(runtime) - index);
  if (name == "depth") return Value::integer(depth0_ + 1);
  if (name == "depth0") return Value::integer(depth0_);
  if (name == "previtem") return index0_ == 0 ? runtime.undefined("there is no previous item") : previous_;
  if (name == "nextitem") {
    const Value& next = peek(runtime);
    return next.is_missing() ? runtime.undefined("there is no next item") : next;
  }
  const Ref<Loop> self(this);
  if (name == "cycle") {
    return runtime.heap().make<Function>(
        "cycle", [self](Runtime& rt, Arguments& arguments) { return self->cycle(rt, arguments); });
  }
  if (name == "changed") {
    return runtime.heap().make<Function>(
        "changed", [self](Runtime& rt, Arguments& arguments) { return self->changed(rt, arguments); });
  }
  return {};
}

}  // namespace forebay::jinja
