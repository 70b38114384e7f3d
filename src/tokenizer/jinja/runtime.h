/// One render as its parts see it: limits, the heap, the current line, and factories for values.
///
/// Confined to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/chat_template.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/value.h"

namespace forebay::jinja {

class Runtime {
 public:
  Runtime(const TemplateLimits& limits, int64_t now_unix) : limits_(limits), now_unix_(now_unix) {}

  const TemplateLimits& limits() const { return limits_; }
  int64_t now_unix() const { return now_unix_; }
  Heap& heap() { return heap_; }

  int line = 1;  // being evaluated

  /// From here on, values are held to the limits: those there are already are the caller's.
  void begin();

  /// Fails when the render has taken more steps than it may.
  void spend(uint64_t n_steps = 1) {
    steps_ += n_steps;
    if (steps_ > limits_.steps) fail("took more than {} steps", limits_.steps);
  }
  /// Work in proportion to a text, such as searching it.
  void spend_bytes(uint64_t n_bytes) { spend(n_bytes / kBytesPerStep); }

  /// Fails before a text of that size is made. Arguments multiply to it, so that neither product overflows.
  void check_text(uint64_t n_bytes, uint64_t n_times = 1) const;

  Value string(std::string text, bool markup = false);
  Value list(std::vector<Value> items);
  Value tuple(std::vector<Value> items);
  Value undefined(std::string message);
  Ref<Dict> dict() { return heap_.make<Dict>(); }

 private:
  friend class Nesting;
  // What a scan of so many bytes costs is about what evaluating a node does.
  static constexpr uint64_t kBytesPerStep = 64;
  // The nesting that the C++ stack is known to bear, whatever the caller asks for.
  static constexpr int kMaxDepth = 1000;

  const TemplateLimits limits_;
  const int64_t now_unix_;
  Heap heap_;
  uint64_t steps_ = 0;
  int depth_ = 0;
};

/// Held while evaluating something nested: fails when too deep.
class Nesting {
 public:
  explicit Nesting(Runtime& runtime);
  Nesting(const Nesting&) = delete;
  ~Nesting() { --runtime_.depth_; }

 private:
  Runtime& runtime_;
};

}  // namespace forebay::jinja
