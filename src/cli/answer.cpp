#include "cli/answer.h"

#include <chrono>

#include <fmt/format.h>

#include "core/format.h"
#include "core/memory_info.h"

namespace forebay::cli {
namespace {

/// How far a prompt that takes a while is, on a line that disappears when the answer begins. Only on a
/// terminal.
class PromptStatus {
  using Clock = std::chrono::steady_clock;

 public:
  explicit PromptStatus(bool wanted) : wanted_(wanted && is_terminal(stderr) && understands_escapes()) {}
  ~PromptStatus() { clear(); }

  void show(int64_t done, int64_t total) {
    if (!wanted_ || done == total || Clock::now() - start_ < std::chrono::milliseconds(300)) return;
    fmt::print(stderr, "\r\033[K\033[2mreading the prompt: {} of {} tokens\033[0m", done, total);
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() {
    if (!shown_) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    shown_ = false;
  }

 private:
  const Clock::time_point start_ = Clock::now();
  bool wanted_;
  bool shown_ = false;
};

std::string rate(int64_t n_tokens, double seconds) {
  if (n_tokens == 0 || seconds <= 0) return {};
  const double per_second = static_cast<double>(n_tokens) / seconds;
  return fmt::format(" at {:.{}f} tok/s", per_second, per_second < 99.95 ? 1 : 0);
}

std::string_view explain(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength:
      return ", stopped at the limit of -n";
    case FinishReason::kContextFull:
      return ", stopped because the context is full (-c raises it)";
    case FinishReason::kRepetition:
      return ", stopped because one token came again and again";
    case FinishReason::kCancelled:
      return ", interrupted";
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      break;
  }
  return "";
}

}  // namespace

AnswerPrinter::AnswerPrinter(const AnswerStyle& style, bool inside)
    : style_(style),
      splitter_(inside),
      out_(stdout, Writer::Style::kPlain),
      reasoning_out_(stderr, Writer::Style::kDim) {}

void AnswerPrinter::take(const ReasoningSplitter::Piece& piece) {
  reasoning_ += piece.reasoning;
  if (style_.show && style_.show_reasoning) reasoning_out_.write(piece.reasoning);
  if (piece.content.empty()) return;
  if (content_.empty()) reasoning_out_.end_line();
  content_ += piece.content;
  if (style_.show) out_.write(piece.content);
}

void AnswerPrinter::push(std::string_view text) {
  if (style_.raw)
    take({.reasoning = {}, .content = std::string(text)});
  else
    take(splitter_.push(text));
}

void AnswerPrinter::finish() {
  if (!style_.raw) take(splitter_.finish());
  reasoning_out_.end_line();
  // A raw continuation is passed on byte for byte, except to a person.
  if (style_.show && (!style_.raw || is_terminal(stdout))) out_.end_line();
}

Result<Answer> answer_prompt(Session& session, std::span<const int32_t> prompt, bool inside,
                             const GenerateOptions& options, const AnswerStyle& style, std::stop_token stop) {
  Answer answer;
  AnswerPrinter printer(style, inside);
  PromptStatus status(style.show);
  const auto on_token = [&](const GeneratedToken& token) {
    status.clear();
    printer.push(token.text);
    // Text that was held back comes without a token at the end.
    if (token.id >= 0 && style.keep_log_probs)
      answer.tokens.push_back({token.id, token.log_prob, {token.top.begin(), token.top.end()}});
    return true;
  };
  const auto on_prefill = [&](int64_t done, int64_t total) { status.show(done, total); };

  Result<GenerateReport> report = session.generate(prompt, options, on_token, on_prefill, stop);
  status.clear();
  printer.finish();
  if (report)
    answer.report = *report;
  else if (report.error().code == Code::kCancelled)
    answer.report.reason = FinishReason::kCancelled;
  else
    return std::move(report).error();
  answer.cancelled = answer.report.reason == FinishReason::kCancelled;
  answer.content = printer.content();
  answer.reasoning = printer.reasoning();
  return answer;
}

std::string closing_line(const ModelInfo& info, const Answer& answer, const SamplingOptions& sampling) {
  const GenerateReport& report = answer.report;
  std::string line = fmt::format("{}: {} prompt tokens", info.name, report.prompt.n_prompt);
  if (report.prompt.n_reused > 0) line += fmt::format(" ({} reused)", report.prompt.n_reused);
  line += rate(report.prompt.n_prefilled, report.prompt.seconds);
  line += fmt::format(", {} tokens", report.n_generated);
  line += rate(report.n_generated, report.decode_seconds);
  line += fmt::format(", {} memory", human_bytes(process_memory().anonymous));
  if (info.experts == ExpertPlacement::kMapped) line += ", experts mapped";
  if (sampling.temperature > 0) line += fmt::format(", seed {}", sampling.seed);
  return line += explain(report.reason);
}

}  // namespace forebay::cli
