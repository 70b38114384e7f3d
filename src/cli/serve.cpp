// forebay serve: the APIs of OpenAI and Anthropic over HTTP.
#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/expert_stats.h"
#include "cli/json_writer.h"
#include "cli/terminal.h"
#include "cli/verbosity.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/memory_info.h"
#include "server/server.h"

namespace forebay::cli {
namespace {

class ServeCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  std::string stats_json(Engine& engine, const Server& server) const;

  EngineFlags engine_;
  Verbosity verbosity_;
  ServerOptions server_;
  int64_t grace_seconds_ = 10;
  std::optional<std::string> stats_;
};

void ServeCommand::declare(FlagTable& flags) {
  engine_.activations = "int8";
  engine_.kv = std::nullopt;
  flags.section("Server");
  engine_.declare_model(flags);
  flags.text("--host", "ADDRESS", server_.host, "listen here; others than this machine's own need --api-key");
  flags.integer("--port", "N", server_.port, {0, 65535}, "listen here; 0: any free port");
  flags.text("--api-key", "KEY", server_.api_key, "ask for this key (Authorization: Bearer, or x-api-key)");
  flags.toggle("--no-key", server_.allow_no_key, "serve other machines without a key");
  flags.text("--cors", "ORIGIN", server_.cors_origin,
             "let pages from this origin use the API; '*': from anywhere; absent: none");
  flags.text("--name", "NAME", server_.model_name, "what the API calls the model; absent: the file's name");
  flags.integer("--parallel", "N", server_.scheduler.n_slots, {1, 256},
                "answers made at once, and conversations kept warm; each takes a context's memory");
  engine_.declare_context(flags);
  flags.integer("--queue", "N", server_.scheduler.max_queued, {1, 1 << 20},
                "requests that may wait; more are refused");
  flags.integer("--prompt-share", "N", server_.scheduler.prompt_share, {1, 65536},
                "most prompt tokens in a pass that others wait for their next token in; changes no result");
  flags.bytes("--max-body", "SIZE", server_.max_body_bytes, "refuse larger requests");
  flags.integer("--idle-timeout", "SECONDS", server_.idle_seconds, {1, 86400},
                "close connections that ask nothing for so long");
  flags.integer("--request-timeout", "SECONDS", server_.request_seconds, {1, 86400},
                "a request must have arrived in this time");
  flags.integer("--write-timeout", "SECONDS", server_.write_seconds, {1, 86400},
                "give up clients that take nothing for so long");
  flags.integer("--stall-timeout", "SECONDS", server_.stall_seconds, {1, 86400},
                "report a pass that takes longer as stuck");
  flags.integer("--max-repeats", "N", server_.max_repeats, {0, 1 << 20},
                "end an answer when one token came so many times in a row; 0: never");
  flags.integer("--grace", "SECONDS", grace_seconds_, {0, 86400},
                "at the end, answers that are being made may take so long");
  flags.section("Speed and memory");
  engine_.declare_speed(flags);
  engine_.declare_experts(flags);
  engine_.declare_kernels(flags);
  engine_.declare_edits(flags);
  flags.section("State that lasts");
  engine_.declare_cache(flags);
  flags.section("What is said");
  flags.choice("--stats", {"json"}, stats_,
               "at the end, the last line on standard error: where time and bytes went, one JSON object");
  verbosity_.declare(flags);
}

Result<void> ServeCommand::check() {
  TRY(verbosity_.check());
  return validate(server_);
}

/// Until Ctrl-C or SIGTERM.
void wait_for(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  ended.wait(lock, stop, [] { return false; });
}

Result<ExitCode> ServeCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  EngineOptions options = TRY(engine_.resolve());
  options.n_sessions = server_.scheduler.n_slots;
  if (!options.cache_dir.empty()) server_.session_dir = options.cache_dir + "/named";
  Engine engine = TRY(Engine::open(options));
  engine_.adopt(engine.info());
  log_settings(flags);
  Writer notes(stderr, Writer::Style::kDim);
  if (engine.plan() && !verbosity_.quiet) notes.write(engine.plan()->text);
  const std::unique_ptr<Server> server = TRY(Server::start(engine, server_));
  if (!verbosity_.quiet)
    notes.write(fmt::format("{} on http://{}:{}, {} conversations of {} tokens\n", engine.info().name,
                            server_.host, server->port(), server_.scheduler.n_slots, engine.info().context));
  wait_for(interrupt.token());
  if (!verbosity_.quiet) notes.write("shutting down\n");
  server->stop(std::chrono::seconds(grace_seconds_));
  TRY(engine.finish_trace());
  if (stats_) fmt::print(stderr, "{}\n", stats_json(engine, *server));
  return ExitCode::kDone;
}

std::string ServeCommand::stats_json(Engine& engine, const Server& server) const {
  const SchedulerStats stats = server.status().stats;
  JsonWriter json;
  json.begin_object();
  json.key("answers").integer(stats.n_finished);
  json.key("cancelled").integer(stats.n_cancelled);
  json.key("failed").integer(stats.n_failed);
  json.key("prompt_tokens").integer(stats.n_prompt);
  json.key("reused_tokens").integer(stats.n_reused);
  json.key("prompt_seconds").number(stats.prompt_seconds);
  json.key("tokens").integer(stats.n_generated);
  json.key("decode_seconds").number(stats.decode_seconds);
  write_engine_stats(json, engine);
  json.end_object();
  return json.text();
}

}  // namespace

CommandInfo serve_command() {
  return {.name = "serve",
          .summary = "answer over HTTP, with the APIs of OpenAI and Anthropic",
          .usage = "[options]",
          .examples = {{"forebay serve -m big.gguf", "on 127.0.0.1:8080"},
                       {"forebay serve --host 0.0.0.0 --api-key SECRET", "for other machines"},
                       {"forebay serve --parallel 8 --context 32768", "eight long conversations at once"}},
          .details =
              "Serves a model until Ctrl-C or SIGTERM. Conversations stay warm: a request that continues one "
              "computes only what is new. docs/api.md lists the paths.",
          .make = [] { return std::unique_ptr<Command>(std::make_unique<ServeCommand>()); }};
}

}  // namespace forebay::cli
