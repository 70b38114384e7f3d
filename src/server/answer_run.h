/// A request's answers while they are made: jobs go to the scheduler, what comes back goes to a reply.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chat/output_parser.h"
#include "server/prompt_text.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/scheduler.h"

namespace forebay {

/// What several requests share.
struct AnswerContext {
  const Engine& engine;
  PromptMaker& prompts;
  Scheduler& scheduler;
  double stall_seconds = 120;  // one thing that takes the engine's thread longer is reported as stuck
  int max_repeats = 512;       // one token so many times in a row ends an answer; 0: never
};

/// Confined to the request's thread.
class AnswerRun {
 public:
  /// One conversation, options.n answers. Errors: kInvalidArgument naming the field, kOutOfMemory when too
  /// many wait.
  static Result<std::unique_ptr<AnswerRun>> chat(AnswerContext context, const ChatRequest& request);
  /// Continuations of each prompt, options.n each: no reasoning, no calls.
  static Result<std::unique_ptr<AnswerRun>> plain(AnswerContext context, std::vector<Prompt> prompts,
                                                  const AnswerOptions& options);
  /// Cancels what is not finished.
  ~AnswerRun();

  /// Waits for news, at most `most`, and gives them as the reply's stream; without a reply they are only
  /// collected. Errors: of the engine, or a stall; nothing follows them.
  Result<std::string> advance(Reply* reply, std::chrono::milliseconds most);
  bool done() const { return n_ended_ == answers_.size(); }
  /// Valid once done.
  std::vector<Choice> choices() const;
  Usage usage() const;
  void cancel();

 private:
  struct Answer {
    std::shared_ptr<Ticket> ticket;
    OutputParser parser;
    Choice choice = {};
    std::string text = {};          // as the model wrote it
    std::vector<int32_t> ids = {};  // of the text
  };
  AnswerRun(AnswerContext context, std::vector<Prompt> prompts, const AnswerOptions& options)
      : context_(context), prompts_(std::move(prompts)), options_(options) {}
  using ConstraintMaker = std::function<Result<std::shared_ptr<TokenConstraint>>()>;
  Result<void> submit(const Job& common, const ChatStyle& style, const ToolSchemas& tools,
                      const ConstraintMaker& constrain);
  std::string take(Reply* reply, int index, Ticket::Update update);
  void finish(Answer& answer, const Prompt& prompt, AnswerEnd end);
  Result<void> check_stall();

  AnswerContext context_;
  std::vector<Prompt> prompts_;
  AnswerOptions options_;
  bool parallel_calls_ = true;
  bool plain_ = false;
  std::vector<Answer> answers_;
  size_t n_ended_ = 0;
  bool begun_ = false;
  bool closed_ = false;
  std::chrono::steady_clock::time_point stall_checked_ = std::chrono::steady_clock::now();
};

}  // namespace forebay
