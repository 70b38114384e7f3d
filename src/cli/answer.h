/// One answer: what is shown while it streams and what is known when it ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "forebay/engine.h"

#include "cli/terminal.h"
#include "engine/reasoning.h"

namespace forebay::cli {

/// How an answer is presented. Nothing here changes its tokens.
struct AnswerStyle {
  bool raw = false;             // a continuation: no reasoning to split off
  bool show = true;             // print while it streams
  bool show_reasoning = true;   // on stderr, dimmed on a terminal
  bool keep_log_probs = false;  // collect AnswerToken::top
};

struct AnswerToken {
  int32_t id;
  double log_prob;
  std::vector<std::pair<int32_t, float>> top;
};

struct Answer {
  std::string content;
  std::string reasoning;
  std::vector<AnswerToken> tokens;
  GenerateReport report;
  bool cancelled = false;  // by the stop token, in the prompt or later
};

/// Splits streamed text into content on stdout and reasoning on stderr. Confined.
class AnswerPrinter {
 public:
  /// `inside`: the prompt left <think> open.
  AnswerPrinter(const AnswerStyle& style, bool inside);

  void push(std::string_view text);
  /// The rest, and the ends of lines.
  void finish();

  const std::string& content() const { return content_; }
  const std::string& reasoning() const { return reasoning_; }

 private:
  void take(const ReasoningSplitter::Piece& piece);

  const AnswerStyle style_;
  ReasoningSplitter splitter_;
  Writer out_;
  Writer reasoning_out_;
  std::string content_;
  std::string reasoning_;
};

/// Generates and shows the answer to `prompt`; `inside` as for AnswerPrinter.
Result<Answer> answer_prompt(Session& session, std::span<const int32_t> prompt, bool inside,
                             const GenerateOptions& options, const AnswerStyle& style, std::stop_token stop);

/// "pebble: 23 prompt tokens (18 reused) at 412 tok/s, 57 tokens at 71.3 tok/s, 48.1 MiB, seed 7, stop"
std::string closing_line(const ModelInfo& info, const Answer& answer, const SamplingOptions& sampling);

}  // namespace forebay::cli
