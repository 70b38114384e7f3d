#include "tokenizer/jinja/runtime.h"

#include <algorithm>

namespace forebay::jinja {

void Runtime::begin() {
  // Values may be a few copies of the output on the way to it, and in a small template something at all.
  heap_.limit_growth(4 * std::min<uint64_t>(limits_.output_bytes, 1ull << 40) + (16ull << 20));
  steps_ = 0;
}

void Runtime::check_text(uint64_t n_bytes, uint64_t n_times) const {
  if (n_times != 0 && n_bytes > limits_.output_bytes / n_times)
    fail("a text of {} x {} bytes is over the limit of {} bytes", n_bytes, n_times, limits_.output_bytes);
}

Value Runtime::string(std::string text, bool markup) {
  check_text(text.size());
  spend_bytes(text.size());
  const uint64_t n_bytes = text.size();
  const Ref<String> result = heap_.make<String>(std::move(text), markup);
  heap_.charge(*result, n_bytes);
  return result;
}

Value Runtime::list(std::vector<Value> items) {
  const uint64_t n_bytes = items.size() * sizeof(Value);
  const Ref<List> result = heap_.make<List>(std::move(items));
  heap_.charge(*result, n_bytes);
  return result;
}

Value Runtime::tuple(std::vector<Value> items) {
  const uint64_t n_bytes = items.size() * sizeof(Value);
  const Ref<Tuple> result = heap_.make<Tuple>(std::move(items));
  heap_.charge(*result, n_bytes);
  return result;
}

Value Runtime::undefined(std::string message) {
  return heap_.make<Undefined>(std::move(message));
}

Nesting::Nesting(Runtime& runtime) : runtime_(runtime) {
  const int limit = std::min(runtime.limits_.depth, Runtime::kMaxDepth);
  if (runtime.depth_ >= limit) fail("nested more than {} levels deep", limit);
  ++runtime.depth_;
}

}  // namespace forebay::jinja
