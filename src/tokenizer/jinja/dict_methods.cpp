#include "tokenizer/jinja/dict_update.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/methods.h"
#include "tokenizer/jinja/repr.h"

namespace forebay::jinja {

namespace {

Value clear(Runtime&, const Value& self, Arguments& arguments) {
  bind("clear", arguments, {}, 0);
  self.as<Dict>().clear();
  return Value::none();
}

Value copy(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("copy", arguments, {}, 0);
  const Ref<Dict> dict = runtime.dict();
  update_dict(runtime, *dict, self);
  return dict;
}

Value get(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("get", arguments, {"", ""}, 1);
  if (const Value* found = self.as<Dict>().find(runtime, bound[0])) return *found;
  return bound[1].is_missing() ? Value::none() : bound[1];
}

template <View::Part part>
Value view(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("view", arguments, {}, 0);
  return runtime.heap().make<View>(Ref(&self.as<Dict>()), part);
}

Value pop(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("pop", arguments, {"", ""}, 1);
  Dict& dict = self.as<Dict>();
  const Value* found = dict.find(runtime, bound[0]);
  if (found == nullptr) {
    if (bound[1].is_missing()) fail("pop: no key {}", repr_of(runtime, bound[0]));
    return bound[1];
  }
  Value value = *found;
  dict.erase(runtime, bound[0]);
  return value;
}

Value popitem(Runtime& runtime, const Value& self, Arguments& arguments) {
  bind("popitem", arguments, {}, 0);
  Dict& dict = self.as<Dict>();
  if (dict.size() == 0) fail("popitem: dictionary is empty");
  const Dict::Entry last = dict.entries().back();
  dict.erase(runtime, last.key);
  return runtime.tuple({last.key, last.value});
}

Value setdefault(Runtime& runtime, const Value& self, Arguments& arguments) {
  const std::vector<Value> bound = bind("setdefault", arguments, {"", ""}, 1);
  Dict& dict = self.as<Dict>();
  if (const Value* found = dict.find(runtime, bound[0])) return *found;
  const Value value = bound[1].is_missing() ? Value::none() : bound[1];
  dict.set(runtime, bound[0], value);
  return value;
}

Value update(Runtime& runtime, const Value& self, Arguments& arguments) {
  if (arguments.positional.size() > 1) fail("update takes at most one mapping");
  if (!arguments.positional.empty()) update_dict(runtime, self.as<Dict>(), arguments.positional[0]);
  for (const auto& [name, value] : arguments.named) self.as<Dict>().set(runtime, runtime.string(name), value);
  return Value::none();
}

// By name.
constexpr Method kMethods[] = {
    {"clear", clear},
    {"copy", copy},
    {"get", get},
    {"items", view<View::Part::kItems>},
    {"keys", view<View::Part::kKeys>},
    {"pop", pop},
    {"popitem", popitem},
    {"setdefault", setdefault},
    {"update", update},
    {"values", view<View::Part::kValues>},
};

}  // namespace

void update_dict(Runtime& runtime, Dict& dict, const Value& from) {
  if (from.is(Kind::kDict)) {
    // A copy: it may be the same dict.
    const std::vector<Dict::Entry> entries = from.as<Dict>().entries();
    for (const Dict::Entry& entry : entries) {
      runtime.spend();
      dict.set(runtime, entry.key, entry.value);
    }
    return;
  }
  const Ref<Iterator> iterator = iterate(runtime, from);
  for (Value item; iterator->next(runtime, item);) {
    runtime.spend();
    const std::vector<Value> pair = collect(runtime, item);
    if (pair.size() != 2)
      fail("dictionary update sequence element has length {}; 2 is required", pair.size());
    dict.set(runtime, pair[0], pair[1]);
  }
}

std::span<const Method> dict_methods() {
  return kMethods;
}

}  // namespace forebay::jinja
