/// Chat templates: the Jinja that model files carry, rendered as Jinja2 does with trim_blocks, lstrip_blocks
/// and loop controls. Bounded: output bytes, steps and recursion have limits, so no template can hang or
/// exhaust the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "forebay/result.h"

namespace forebay {

struct TemplateLimits {
  uint64_t output_bytes = 64ull << 20;
  uint64_t steps = 50'000'000;  // statements and expressions evaluated
  int depth = 200;              // nested expressions, blocks, macro calls
};

/// Immutable after parsing. Thread-safe.
class ChatTemplate {
 public:
  /// Errors: kCorrupt, "template line 12: expected 'endif', got 'endfor'".
  static Result<ChatTemplate> parse(std::string_view source);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  /// Renders with `context` (an object; key order kept) as the global variables: messages, tools,
  /// add_generation_prompt, bos_token, enable_thinking, ... `now_unix` is what strftime_now formats, in UTC.
  /// Errors: kInvalidArgument with line and reason, raise_exception's text included.
  Result<std::string> render(const nlohmann::ordered_json& context, int64_t now_unix,
                             const TemplateLimits& limits = {}) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace forebay
