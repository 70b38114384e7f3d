/// The `loop` variable of a for loop, which also drives the loop.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "tokenizer/jinja/arguments.h"

namespace forebay::jinja {

class Loop : public Opaque {
 public:
  /// Renders the loop's body for other items, one level deeper.
  using Recurse = std::function<Value(Runtime&, const Value& items, int depth0)>;

  /// `items` is what length is asked of; `iterator` what is walked.
  Loop(Value items, Ref<Iterator> iterator, Recurse recurse, int depth0)
      : items_(std::move(items)),
        iterator_(std::move(iterator)),
        recurse_(std::move(recurse)),
        depth0_(depth0) {}

  void forget() override;
  std::string_view type_name() const override { return "LoopContext"; }
  std::string repr(Runtime& runtime) const override;
  bool is_callable() const override { return true; }
  /// loop(items): the recursion.
  Value call(Runtime& runtime, Arguments& arguments) override;
  Value attribute(Runtime& runtime, std::string_view name) override;

  /// The next item; false behind the last.
  bool advance(Runtime& runtime, Value& item);

 private:
  /// The item behind the current one; missing at the end.
  const Value& peek(Runtime& runtime);
  Int length(Runtime& runtime);
  Value cycle(Runtime& runtime, const Arguments& arguments) const;
  Value changed(Runtime& runtime, const Arguments& arguments);

  Value items_;
  Ref<Iterator> iterator_;
  Recurse recurse_;  // null unless the loop is recursive
  const int depth0_;
  Int index0_ = -1;
  std::optional<Int> length_;
  Value previous_, current_, after_;
  Value last_changed_;
};

}  // namespace forebay::jinja
