/// A window: the only shape of a forward pass. One token of one sequence, a verification of a few rows, a
/// prefill chunk, or one token each of many sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/recurrence_observer.h"
#include "model/state.h"
#include "tensor/view.h"

namespace forebay {

/// Which rows of a span get logits.
enum class LogitRows { kNone, kLast, kAll };

/// The next tokens of one sequence. A state may appear in one span of a window only.
struct Span {
  SequenceState* state = nullptr;
  std::span<const int32_t> tokens;
  LogitRows logits = LogitRows::kLast;
  /// Whether these are a prompt's tokens, and how many of the last of them the next token hangs on most:
  /// those are routed exactly where cache-aware routing is on.
  bool prompt = false;
  int64_t n_exact = 0;
  /// Sees what the recurrent layers run on; null: nobody does.
  RecurrenceObserver* recurrence = nullptr;
};

/// Borrowed from the model until its next forward pass.
struct ForwardOutput {
  /// One row per asked row, in span order.
  TensorView<const float> logits;
  /// What the output head read to give them: Model::head of these rows gives the same bits.
  TensorView<const float> head_rows;
  /// The trunk's residual after the last block, one row per window row: what the draft head reads. For
  /// single-stream families it is the final norm's output.
  TensorView<const float> hidden;
};

/// A window as layers see it: T rows, which span each belongs to, at which position.
struct Batch {
  struct Part {
    SequenceState* state;
    int64_t first_row;
    int64_t n_rows;
    int64_t first_cell;  // position of its first token
    std::span<const int32_t> tokens;
    bool prompt = false;
    int64_t n_exact = 0;  // last rows
    RecurrenceObserver* recurrence = nullptr;
  };
  int64_t n_rows = 0;
  std::vector<Part> parts;
  std::vector<int64_t> positions;  // per row
};

}  // namespace forebay
