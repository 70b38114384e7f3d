/// Cuts text into the pieces that BPE works on.
#pragma once

#include <memory>
#include <string_view>

#include "forebay/result.h"

#include "core/function_ref.h"
#include "tokenizer/pre_tokenizer_rules.h"

namespace forebay {

/// Immutable after creation. Thread-safe.
class PreTokenizer {
 public:
  /// Errors: kUnsupported when this build has no PCRE2; kInternal when PCRE2 refuses a pattern.
  static Result<PreTokenizer> create(const PreTokenizerRules& rules);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  /// Calls `piece` with consecutive parts of `text`, which together are all of it. `text` is valid UTF-8.
  void split(std::string_view text, FunctionRef<void(std::string_view)> piece) const;

 private:
  struct Impl;
  explicit PreTokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay
