// forebay run: one prompt and its answer, or a chat.
#include <fmt/format.h>

#include "cli/answer.h"
#include "cli/chat.h"
#include "cli/command.h"
#include "cli/conversation.h"
#include "cli/engine_flags.h"
#include "cli/expert_stats.h"
#include "cli/input.h"
#include "cli/json_writer.h"
#include "cli/sampling_flags.h"
#include "cli/verbosity.h"
#include "constrain/constrain.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/memory_info.h"
#include "core/storage.h"
#include "tokenizer/tokenizer.h"

namespace forebay::cli {
namespace {

class RunCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  bool is_chat() const { return !prompt_ && is_terminal(stdin); }
  Conversation start_conversation() const;
  Result<std::shared_ptr<TokenConstraint>> make_constraint(const Engine& engine,
                                                           bool starts_in_reasoning) const;
  Result<ExitCode> answer_once(Engine& engine, GenerateOptions options, const FlagTable& flags,
                               std::string prompt, std::stop_token stop);
  std::string as_json(Engine& engine, const Answer& answer, const FlagTable& flags) const;

  EngineFlags engine_;
  SamplingFlags sampling_;
  Verbosity verbosity_;
  std::optional<std::string> prompt_;
  std::optional<std::string> system_;
  std::optional<std::string> think_;
  std::optional<std::string> stats_;
  std::string save_session_, load_session_;
  std::optional<std::string> json_schema_;
  std::vector<std::string> stop_;
  int64_t n_tokens_ = -1;
  int log_probs_ = 0;
  bool raw_ = false;
  bool json_ = false;
  bool json_object_ = false;
};

void RunCommand::declare(FlagTable& flags) {
  engine_.activations = "int8";
  engine_.kv = std::nullopt;
  flags.section("Prompt and answer");
  engine_.declare_model(flags);
  flags.text("-p,--prompt", "TEXT", prompt_,
             "answer this; absent: chat on a terminal, else read standard input");
  flags.text("--system", "TEXT", system_, "the system message");
  flags.choice("--think", {"on", "off"}, think_, "let the model reason first; absent: as its template does");
  flags.toggle("--raw", raw_, "no chat template: continue the prompt as it is");
  flags.integer("-n,--tokens", "N", n_tokens_, {-1, 1 << 24},
                "most tokens of an answer, reasoning included; -1: until the model ends it");
  engine_.declare_context(flags);
  flags.texts("--stop", "TEXT", stop_, "text that ends the answer and is not part of it");
  flags.toggle("--json", json_, "print one JSON object instead of the text, when the answer is complete");
  flags.text("--json-schema", "FILE|JSON", json_schema_,
             "the answer is JSON of this schema; what begins with a brace is the schema itself");
  flags.toggle("--json-object", json_object_, "the answer is a JSON object");
  flags.integer("--logprobs", "N", log_probs_, {0, 1000},
                "with --json: the N likeliest alternatives for every token, with log-probabilities");
  sampling_.declare(flags);
  flags.section("Speed and memory");
  engine_.declare_speed(flags);
  engine_.declare_experts(flags);
  engine_.declare_kernels(flags);
  engine_.declare_edits(flags);
  flags.section("State that lasts");
  flags.text("--save-session", "FILE", save_session_,
             "afterwards, write the state of prompt and answer: --load-session goes on from it bit for bit");
  flags.text("--load-session", "FILE", load_session_,
             "begin with a saved state; what the prompt has in common with it is not read again");
  engine_.declare_cache(flags);
  flags.section("What is said");
  flags.choice("--stats", {"json"}, stats_,
               "the last line on standard error: where time and bytes went, one JSON object");
  verbosity_.declare(flags);
}

Result<void> RunCommand::check() {
  TRY(verbosity_.check());
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (raw_ && system_) return refuse("--system needs the chat template that --raw leaves out");
  if (raw_ && think_) return refuse("--think needs the chat template that --raw leaves out");
  if (is_chat() && (!save_session_.empty() || !load_session_.empty()))
    return refuse("--save-session and --load-session need a prompt; in a chat, --cache-dir keeps the state");
  if (log_probs_ > 0 && !json_) return refuse("--logprobs needs --json");
  if (json_object_ && json_schema_) return refuse("--json-object and --json-schema exclude each other");
  if (is_chat() && (json_object_ || json_schema_))
    return refuse("--json-schema and --json-object need a prompt: -p TEXT or standard input");
  for (const std::string& text : stop_)
    if (text.empty()) return refuse("--stop: an empty text");
  if (is_chat() && raw_) return refuse("--raw needs a prompt: -p TEXT or standard input");
  if (is_chat() && json_) return refuse("--json needs a prompt: -p TEXT or standard input");
  for (const std::string& bias : sampling_.logit_bias)
    if (Result<std::pair<int32_t, float>> parsed = parse_logit_bias(bias); !parsed)
      return std::move(parsed).error().in("--logit-bias");
  return {};
}

Conversation RunCommand::start_conversation() const {
  Conversation conversation;
  if (system_) conversation.set_system(*system_);
  if (think_) conversation.set_thinking(*think_ == "on");
  return conversation;
}

Result<ExitCode> RunCommand::run(const FlagTable& flags) {
  const bool chat = is_chat();
  std::string prompt;
  if (prompt_) {
    prompt = *prompt_;
  } else if (!chat) {
    prompt = TRY(read_standard_input());
    if (prompt.empty())
      return Error{Code::kInvalidArgument, "no prompt: standard input is empty and there is no -p"};
    // A pipe's last line end belongs to the pipe, except where bytes count.
    if (!raw_ && prompt.ends_with('\n')) prompt.pop_back();
  }

  // The chat has an Interrupt per answer.
  std::optional<Interrupt> interrupt;
  if (!chat) interrupt.emplace();
  Engine engine = TRY(Engine::open(TRY(engine_.resolve())));
  engine_.adopt(engine.info());
  GenerateOptions options{.sampling = TRY(sampling_.resolve(engine)),
                          .max_tokens = n_tokens_,
                          .stop = stop_,
                          // Some vocabularies count <think> and its like among the control tokens.
                          .specials = true,
                          .top_log_probs = log_probs_};
  log_settings(flags);
  if (engine.plan() && !verbosity_.quiet) Writer(stderr, Writer::Style::kDim).write(engine.plan()->text);
  if (!chat) return answer_once(engine, options, flags, std::move(prompt), interrupt->token());
  Chat talk(engine, options, start_conversation(), {.show_reasoning = !verbosity_.quiet}, verbosity_.quiet);
  const ExitCode ended = TRY(talk.run());
  TRY(engine.finish_trace());
  return ended;
}

/// What --json-schema and --json-object ask for; null when neither is there.
Result<std::shared_ptr<TokenConstraint>> RunCommand::make_constraint(const Engine& engine,
                                                                     bool starts_in_reasoning) const {
  if (!json_object_ && !json_schema_) return std::shared_ptr<TokenConstraint>();
  if (engine.tokenizer() == nullptr)
    return Error{Code::kUnsupported, "--json-schema and --json-object: the model file has no vocabulary"};
  const ConstraintVocabulary vocabulary(*engine.tokenizer());
  std::unique_ptr<TokenConstraint> inner;
  if (json_schema_) {
    std::string schema = *json_schema_;
    if (!schema.starts_with('{')) schema = TRY(read_text(*make_posix_storage(), schema, 16 << 20));
    inner = TRY(compile_json_schema(schema, vocabulary));
  } else {
    inner = TRY(compile_json_object(vocabulary));
  }
  return std::shared_ptr<TokenConstraint>(after_reasoning(std::move(inner), starts_in_reasoning, vocabulary));
}

/// Where tokens, time and bytes went: members of --json and of --stats json.
void write_stats(JsonWriter& json, Engine& engine, const GenerateReport& report) {
  json.key("prompt_tokens").integer(report.prompt.n_prompt);
  json.key("reused_tokens").integer(report.prompt.n_reused);
  json.key("loaded_tokens").integer(report.prompt.n_loaded);
  json.key("reuse").string(report.prompt.why);
  json.key("tokens").integer(report.n_generated);
  json.key("prompt_seconds").number(report.prompt.seconds);
  json.key("decode_seconds").number(report.decode_seconds);
  write_engine_stats(json, engine, report.prompt.seconds + report.decode_seconds);
}

Result<ExitCode> RunCommand::answer_once(Engine& engine, GenerateOptions options, const FlagTable& flags,
                                         std::string prompt, std::stop_token stop) {
  if (!raw_) {
    Conversation conversation = start_conversation();
    conversation.add_user(prompt);
    prompt = TRY(engine.render_chat(conversation.prompt_json()));
    log::debug("prompt: {}", prompt);
  }
  const bool reasons = !raw_ && ends_inside_thinking(prompt);
  options.constraint = TRY(make_constraint(engine, reasons));
  const std::vector<int32_t> ids = TRY(engine.tokenize(prompt));
  Session session = TRY(engine.new_session());
  if (!load_session_.empty()) TRY(session.load(load_session_));
  const AnswerStyle style{
      .raw = raw_, .show = !json_, .show_reasoning = !verbosity_.quiet, .keep_log_probs = json_};
  const Answer answer = TRY(answer_prompt(session, ids, reasons, options, style, stop));
  log::debug("state: {}", answer.report.prompt.why);
  if (!save_session_.empty() && !answer.cancelled) TRY(session.save(save_session_));
  if (json_) fmt::print("{}\n", as_json(engine, answer, flags));
  if (!verbosity_.quiet) {
    Writer notes(stderr, Writer::Style::kDim);
    notes.write(closing_line(engine.info(), answer, options.sampling) + '\n');
    if (const auto stats = engine.expert_stats()) notes.write(experts_line(*stats) + '\n');
    const double seconds = answer.report.decode_seconds;
    const double rate = seconds > 0 ? static_cast<double>(answer.report.n_generated) / seconds : 0;
    if (engine.plan()) notes.write(plan_line(*engine.plan(), *engine.expert_stats(), rate) + '\n');
  }
  TRY(engine.finish_trace());
  if (stats_) {
    JsonWriter stats;
    stats.begin_object();
    write_stats(stats, engine, answer.report);
    stats.end_object();
    fmt::print(stderr, "{}\n", stats.text());
  }
  return answer.cancelled ? ExitCode::kInterrupted : ExitCode::kDone;
}

std::string RunCommand::as_json(Engine& engine, const Answer& answer, const FlagTable& flags) const {
  const GenerateReport& report = answer.report;
  JsonWriter json;
  json.begin_object();
  json.key("model").string(engine.info().name);
  json.key("text").string(answer.content);
  if (!answer.reasoning.empty()) json.key("reasoning").string(answer.reasoning);
  json.key("finish_reason").string(name_of(report.reason));
  write_stats(json, engine, report);
  json.key("ids").begin_array();
  for (const AnswerToken& token : answer.tokens) json.integer(token.id);
  json.end_array();
  if (log_probs_ > 0) {
    const auto describe = [&](int32_t id, double log_prob) {
      json.key("id").integer(id);
      json.key("text").string(engine.tokenizer()->token_bytes(id, /*specials=*/true));
      json.key("logprob").number(log_prob);
    };
    json.key("logprobs").begin_array();
    for (const AnswerToken& token : answer.tokens) {
      json.begin_object();
      describe(token.id, token.log_prob);
      json.key("top").begin_array();
      for (const auto& [id, log_prob] : token.top) {
        json.begin_object();
        describe(id, log_prob);
        json.end_object();
      }
      json.end_array().end_object();
    }
    json.end_array();
  }
  write_settings(json, flags);
  json.end_object();
  return json.text();
}

}  // namespace

CommandInfo run_command() {
  return {.name = "run",
          .summary = "answer a prompt, or chat",
          .usage = "[options]",
          .examples = {{"forebay run", "chat; /help lists what can be typed"},
                       {"forebay run -p \"What is 37 + 58?\"", "one answer, on standard output"},
                       {"git log -5 | forebay run --system \"Summarise.\"", "the prompt from a pipe"},
                       {"forebay run -m big.gguf --raw -p \"Once\" -n 50", "continue a text"}},
          .details =
              "Answers a prompt with a model. The answer goes to standard output; reasoning, notes and the "
              "closing line go to standard error. Ctrl-C stops an answer.",
          .make = [] { return std::unique_ptr<Command>(std::make_unique<RunCommand>()); }};
}

}  // namespace forebay::cli
