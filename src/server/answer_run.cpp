#include "server/answer_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "chat/reasoning_budget.h"
#include "constrain/constrain.h"
#include "core/log.h"
#include "tokenizer/tokenizer.h"

namespace forebay {
namespace {

constexpr std::chrono::seconds kStallCheckEvery{1};

Error about(std::string_view field, const Error& error) {
  return {Code::kInvalidArgument, fmt::format("{}: {}", field, error.message)};
}

/// What the request says the content has to be: JSON, or calls. Null when it may be anything.
Result<std::shared_ptr<TokenConstraint>> make_constraint(const AnswerContext& context,
                                                         const ChatRequest& request, const ToolSchemas& tools,
                                                         bool starts_thinking) {
  const ToolChoice& choice = request.tool_choice;
  std::unique_ptr<TokenConstraint> inner;
  if (choice.kind == ToolChoice::Kind::kRequired || choice.kind == ToolChoice::Kind::kNamed) {
    std::vector<std::string> names;
    if (choice.kind == ToolChoice::Kind::kNamed) names.push_back(choice.name);
    ConstraintResult calls = compile_tool_calls(context.prompts.style().tools, tools, names,
                                                request.parallel_calls, context.prompts.constraints());
    if (!calls) return about("tool_choice", calls.error());
    inner = std::move(calls).value();
  } else if (request.options.schema) {
    ConstraintResult json = compile_json_schema(dump(*request.options.schema), context.prompts.constraints());
    if (!json) return about("response_format", json.error());
    inner = std::move(json).value();
  } else {
    return std::shared_ptr<TokenConstraint>();
  }
  return std::shared_ptr<TokenConstraint>(
      after_reasoning(std::move(inner), starts_thinking, context.prompts.constraints()));
}

Result<void> check_length(const Prompt& prompt, int64_t context, std::string_view field) {
  const auto n = static_cast<int64_t>(prompt.ids.size());
  if (n == 0) return Error{Code::kInvalidArgument, fmt::format("{}: no tokens", field)};
  if (n <= context) return {};
  return Error{Code::kInvalidArgument,
               fmt::format("{}: {} tokens, the context holds {} (forebay serve --context raises it)", field,
                           n, context)};
}

}  // namespace

Result<std::unique_ptr<AnswerRun>> AnswerRun::chat(AnswerContext context, const ChatRequest& request) {
  Prompt prompt = TRY(context.prompts.chat(request));
  TRY(check_length(prompt, context.engine.info().context, "messages"));
  const Tokenizer& tokenizer = *context.engine.tokenizer();
  const ChatStyle& style = context.prompts.style();

  Job job;
  job.options = request.options.generate;
  job.starts_thinking = prompt.starts_thinking;
  job.thinking_budget = request.options.thinking_budget;
  job.wrap_up = tokenizer.encode(wrap_up_text());
  ToolSchemas tools;
  if (request.tools.is_array() && request.tool_choice.kind != ToolChoice::Kind::kNone)
    tools = TRY(ToolSchemas::parse(request.tools));
  // The tools stay in the prompt, so that the prefix does; the model cannot begin a call.
  if (request.tool_choice.kind == ToolChoice::Kind::kNone)
    if (const auto token = context.prompts.tool_token())
      job.options.sampling.logit_bias.emplace_back(*token, -INFINITY);

  std::vector<Prompt> prompts;
  prompts.push_back(std::move(prompt));
  std::unique_ptr<AnswerRun> run(new AnswerRun(context, std::move(prompts), request.options));
  run->parallel_calls_ = request.parallel_calls;
  const bool starts_thinking = job.starts_thinking;
  TRY(run->submit(job, style, tools,
                  [&] { return make_constraint(context, request, tools, starts_thinking); }));
  return run;
}

Result<std::unique_ptr<AnswerRun>> AnswerRun::plain(AnswerContext context, std::vector<Prompt> prompts,
                                                    const AnswerOptions& options) {
  for (const Prompt& prompt : prompts) TRY(check_length(prompt, context.engine.info().context, "prompt"));
  Job job;
  job.options = options.generate;
  std::unique_ptr<AnswerRun> run(new AnswerRun(context, std::move(prompts), options));
  run->plain_ = true;
  TRY(run->submit(job, {}, {}, [] { return std::shared_ptr<TokenConstraint>(); }));
  return run;
}

Result<void> AnswerRun::submit(const Job& common, const ChatStyle& style, const ToolSchemas& tools,
                               const ConstraintMaker& constrain) {
  for (const Prompt& prompt : prompts_) {
    std::shared_ptr<const Ticket> first;
    for (int i = 0; i < options_.n; ++i) {
      Job job = common;
      job.prompt = prompt.ids;
      job.stop = options_.stop;
      job.client = options_.client;
      job.options.sampling.seed += static_cast<uint64_t>(i);
      job.options.max_repeats = context_.max_repeats;
      job.options.constraint = TRY(constrain());
      job.after = first;
      std::shared_ptr<Ticket> ticket = TRY(context_.scheduler.submit(std::move(job)));
      if (first == nullptr) first = ticket;
      answers_.push_back({std::move(ticket), OutputParser(style, tools, !plain_ && prompt.starts_thinking)});
    }
  }
  return {};
}

AnswerRun::~AnswerRun() {
  cancel();
}

void AnswerRun::cancel() {
  for (const Answer& answer : answers_)
    if (!answer.choice.ended) answer.ticket->cancel();
}

std::vector<Choice> AnswerRun::choices() const {
  std::vector<Choice> out;
  for (const Answer& answer : answers_) out.push_back(answer.choice);
  return out;
}

Usage AnswerRun::usage() const {
  Usage usage;
  // Answers to one prompt count it once.
  for (size_t i = 0; i < answers_.size(); ++i) {
    const AnswerEnd& end = answers_[i].choice.end;
    if (i % static_cast<size_t>(options_.n) == 0) {
      usage.n_prompt += static_cast<int64_t>(prompts_[i / static_cast<size_t>(options_.n)].ids.size());
      usage.n_cached += end.report.prompt.n_reused;
    }
    usage.n_completion += end.report.n_generated;
    usage.n_reasoning += end.n_reasoning;
  }
  return usage;
}

Result<void> AnswerRun::check_stall() {
  const auto now = std::chrono::steady_clock::now();
  if (now - stall_checked_ < kStallCheckEvery) return {};
  stall_checked_ = now;
  const SchedulerStatus status = context_.scheduler.status();
  if (status.busy_seconds < context_.stall_seconds) return {};
  cancel();
  return Error{Code::kIo,
               fmt::format("engine: stuck, for {:.0f} s at {} ({} waiting, this request is in phase {})",
                           status.busy_seconds, status.busy_with, status.n_queued,
                           name_of(answers_[0].ticket->phase()))};
}

Result<std::string> AnswerRun::advance(Reply* reply, std::chrono::milliseconds most) {
  std::string out;
  bool news = false;
  for (size_t i = 0; i < answers_.size(); ++i) {
    Answer& answer = answers_[i];
    if (answer.choice.ended) continue;
    // The first of several may wait its turn while the others go on.
    const bool alone = answers_.size() == 1;
    Ticket::Update update = answer.ticket->wait(alone ? most : std::min(most, std::chrono::milliseconds(5)));
    if (update.end && !*update.end) {
      cancel();
      return update.end->error();
    }
    if (update.prompt) answer.choice.end.report.prompt = *update.prompt;
    if (reply != nullptr && !begun_ && update.prompt) {
      begun_ = true;
      out += reply->begin(usage());
    }
    news = news || !update.tokens.empty() || update.end;
    out += take(reply, static_cast<int>(i), std::move(update));
  }
  if (!news) TRY(check_stall());
  if (done() && reply != nullptr && !closed_) {
    closed_ = true;
    out += reply->close(usage());
  }
  return out;
}

std::string AnswerRun::take(Reply* reply, int index, Ticket::Update update) {
  Answer& answer = answers_[static_cast<size_t>(index)];
  std::string text;
  for (const AnswerToken& token : update.tokens) {
    text += token.text;
    if (token.id >= 0) answer.ids.push_back(token.id);
  }
  answer.text += text;
  OutputParser::Events events;
  if (plain_) {
    if (!text.empty())
      events.push_back({.kind = OutputEvent::Kind::kContent, .text = text, .id = {}, .name = {}});
    answer.choice.answer.content += text;
  } else {
    events = answer.parser.feed(text);
    if (update.end) {
      OutputParser::Events rest = answer.parser.finish();
      std::move(rest.begin(), rest.end(), std::back_inserter(events));
    }
  }
  std::string out;
  const auto call_ended = [](const OutputEvent& e) { return e.kind == OutputEvent::Kind::kCallEnd; };
  const auto first_end = std::find_if(events.begin(), events.end(), call_ended);
  const bool enough = !parallel_calls_ && first_end != events.end();
  if (enough) {
    events.erase(first_end + 1, events.end());
    answer.ticket->cancel();
  }
  if (reply != nullptr) out += reply->deltas(index, events, update.tokens);
  if (options_.log_probs)
    std::move(update.tokens.begin(), update.tokens.end(), std::back_inserter(answer.choice.tokens));
  if (!update.end && !enough) return out;

  AnswerEnd end = update.end ? update.end->value() : answer.choice.end;
  if (enough) {
    end.report.reason = FinishReason::kStopToken;
    end.report.n_generated = static_cast<int64_t>(answer.ids.size());
  }
  finish(answer, prompts_[static_cast<size_t>(index / options_.n)], std::move(end));
  if (enough && answer.choice.answer.calls.size() > 1) answer.choice.answer.calls.resize(1);
  if (reply != nullptr) out += reply->end(index, answer.choice);
  return out;
}

void AnswerRun::finish(Answer& answer, const Prompt& prompt, AnswerEnd end) {
  ++n_ended_;
  answer.choice.ended = true;
  answer.choice.end = std::move(end);
  if (plain_) return;
  answer.choice.answer = answer.parser.answer();
  for (const ParsedCall& call : answer.choice.answer.calls)
    if (call.state == CallState::kMalformed)
      log::warn("call of {}: arguments that are no JSON object: {}", call.name, call.arguments);
  if (!answer.choice.answer.calls.empty()) context_.prompts.tool_memory().remember(answer.choice.answer);
  if (answer.choice.end.report.reason != FinishReason::kStopToken) return;
  std::vector<int32_t> ids = prompt.ids;
  ids.insert(ids.end(), answer.ids.begin(), answer.ids.end());
  context_.prompts.token_memory().remember(prompt.text + answer.text, std::move(ids));
}

}  // namespace forebay
