/// The objects templates make by calling globals, and functions of the interpreter as values.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/jinja/arguments.h"

namespace forebay::jinja {

/// A global function, or a method of one of these objects.
class Function : public Opaque {
 public:
  using Call = std::function<Value(Runtime&, Arguments&)>;
  Function(std::string_view name, Call call) : name_(name), call_(std::move(call)) {}
  void forget() override { call_ = nullptr; }
  std::string_view type_name() const override { return "function"; }
  std::string repr(Runtime&) const override { return fmt::format("<function {}>", name_); }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override;

 private:
  const std::string_view name_;  // of static storage
  Call call_;
};

/// Attributes that survive the scope they are set in.
class Namespace : public Opaque {
 public:
  explicit Namespace(Ref<Dict> attributes) : attributes_(std::move(attributes)) {}
  void forget() override { attributes_ = {}; }
  std::string_view type_name() const override { return "Namespace"; }
  std::string repr(Runtime& runtime) const override;
  Value attribute(Runtime& runtime, std::string_view name) override;
  void set(Runtime& runtime, std::string_view name, Value value);

 private:
  Ref<Dict> attributes_;
};

/// Goes around its items, one with every next().
class Cycler : public Opaque {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  void forget() override { items_.clear(); }
  std::string_view type_name() const override { return "Cycler"; }
  Value attribute(Runtime& runtime, std::string_view name) override;

 private:
  std::vector<Value> items_;  // not empty, until forgotten
  size_t position_ = 0;
};

/// Nothing when first called, then its separator.
class Joiner : public Opaque {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  void forget() override { separator_ = {}; }
  std::string_view type_name() const override { return "Joiner"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override;
  Value attribute(Runtime& runtime, std::string_view name) override;

 private:
  Value separator_;
  bool used_ = false;
};

}  // namespace forebay::jinja
