/// A part of a text as the engine would read it.
#pragma once

#include <cstdint>
#include <span>

#include "engine/batch.h"
#include "model/model.h"

namespace forebay {

/// Tokens [first, first + n) of a window, logits of all. A text is one of answers, unless the model prefers
/// experts in memory in prompts: then it is a prompt, whose last tokens are routed exactly.
inline Span text_span(const Model& model, SequenceState& state, std::span<const int32_t> window, size_t first,
                      size_t n) {
  Span span{.state = &state, .tokens = window.subspan(first, n), .logits = LogitRows::kAll};
  span.prompt = model.routing().prompt.lambda > 0;
  if (span.prompt)
    span.n_exact = n_exact_rows(static_cast<int64_t>(n), static_cast<int64_t>(window.size() - first - n));
  return span;
}

}  // namespace forebay
