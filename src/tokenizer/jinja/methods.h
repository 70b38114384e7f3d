/// The methods of strings, lists, tuples, dicts and numbers.
#pragma once

#include <span>
#include <string_view>

#include "tokenizer/jinja/arguments.h"

namespace forebay::jinja {

struct Method {
  std::string_view name;
  Value (*call)(Runtime& runtime, const Value& self, Arguments& arguments);
};

std::span<const Method> string_methods();
std::span<const Method> list_methods();
std::span<const Method> tuple_methods();
std::span<const Method> dict_methods();

/// Null when values of this kind have no such method.
const Method* find_method(const Value& self, std::string_view name);

class BoundMethod : public Opaque {
 public:
  BoundMethod(Value self, const Method& method) : self_(std::move(self)), method_(method) {}
  void forget() override { self_ = {}; }
  std::string_view type_name() const override { return "method"; }
  std::string repr(Runtime&) const override { return fmt::format("<built-in method {}>", method_.name); }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override {
    return method_.call(runtime, self_, arguments);
  }

 private:
  Value self_;
  const Method& method_;
};

}  // namespace forebay::jinja
