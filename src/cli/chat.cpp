#include "cli/chat.h"

#include <fmt/format.h>

#include "cli/expert_stats.h"
#include "cli/input.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/storage.h"

namespace forebay::cli {
namespace {

constexpr std::string_view kHelp =
    "/system TEXT     set the system message; without TEXT, show it; /system - removes it\n"
    "/think on|off    let the model reason before it answers, or not\n"
    "/reset           forget the conversation, keep the system message\n"
    "/save FILE       write the conversation as JSON\n"
    "/load FILE       go on with a saved one\n"
    "/quit            leave (also Ctrl-D)\n"
    "A line that ends with \\ goes on in the next one; \"\"\" begins and ends a block of lines.\n"
    "Ctrl-C stops an answer; twice at the prompt, it leaves.\n";

Error usage(std::string_view wanted) {
  return {Code::kInvalidArgument, fmt::format("usage: {}", wanted)};
}

}  // namespace

Chat::Chat(Engine& engine, GenerateOptions options, Conversation conversation, AnswerStyle style, bool quiet)
    : engine_(engine),
      options_(std::move(options)),
      conversation_(std::move(conversation)),
      style_(style),
      quiet_(quiet) {}

void Chat::say(std::string_view text) const {
  Writer writer(stderr, Writer::Style::kDim);
  writer.write(text);
  writer.end_line();
}

Result<ExitCode> Chat::run() {
  const ModelInfo& info = engine_.info();
  // Said now rather than after the first message was typed.
  if (!info.has_tokenizer || !info.has_chat_template) {
    Conversation probe;
    probe.add_user("");
    TRY(engine_.tokenize(TRY(engine_.render_chat(probe.prompt_json()))));
  }
  Session session = TRY(engine_.new_session());
  if (!quiet_)
    say(fmt::format("{} ({}), context {}. /help lists what can be typed.", info.name, info.architecture,
                    info.context));

  LineEditor editor;
  MessageAssembler assembler;
  while (true) {
    LineEditor::Line line = editor.read(assembler.in_progress() ? ". " : "> ");
    if (line.end == LineEditor::End::kEndOfInput) return ExitCode::kDone;
    if (line.end == LineEditor::End::kTerminated) return ExitCode::kInterrupted;
    if (line.end == LineEditor::End::kInterrupted) {
      if (interrupted_) return ExitCode::kInterrupted;
      interrupted_ = true;
      assembler.clear();
      say("Ctrl-C again leaves.");
      continue;
    }
    interrupted_ = false;
    editor.remember(line.text);
    std::optional<std::string> message = assembler.push(line.text);
    if (!message || message->find_first_not_of(" \n\t") == std::string::npos) continue;
    if (const auto command = parse_command(*message); command && !assembler.was_block()) {
      if (const std::optional<ExitCode> end = obey(session, *command)) return *end;
      continue;
    }
    Result<void> turn = take_turn(session, std::move(*message));
    if (!turn) say(turn.error().message);
  }
}

Result<void> Chat::take_turn(Session& session, std::string text) {
  conversation_.add_user(text);
  Result<Answer> answer = [&]() -> Result<Answer> {
    const Interrupt interrupt;
    const std::string prompt = TRY(engine_.render_chat(conversation_.prompt_json()));
    const std::vector<int32_t> ids = TRY(engine_.tokenize(prompt));
    return answer_prompt(session, ids, ends_inside_thinking(prompt), options_, style_, interrupt.token());
  }();
  const bool nothing_said = !answer || (answer->content.empty() && answer->reasoning.empty());
  // Two user messages in a row would confuse most templates: without an answer there was no question.
  if (!answer || (answer->cancelled && nothing_said))
    conversation_.drop_last();
  else
    conversation_.add_assistant(answer->content, answer->reasoning);
  if (!answer) return std::move(answer).error();

  interrupted_ = answer->cancelled;
  log::debug("state: {}", answer->report.prompt.why);
  if (!quiet_) say(closing_line(engine_.info(), *answer, options_.sampling));
  if (const auto stats = engine_.expert_stats(); stats && !quiet_) say(experts_line(*stats));
  // The same question again may get another answer, and --seed still fixes the whole chat.
  ++options_.sampling.seed;
  return {};
}

std::optional<ExitCode> Chat::obey(Session& session, const TypedCommand& command) {
  const auto& [name, argument] = command;
  Result<void> done;
  if (name == "quit" || name == "exit") return ExitCode::kDone;
  if (name == "help") {
    say(kHelp);
  } else if (name == "system") {
    if (argument == "-")
      conversation_.set_system("");
    else if (!argument.empty())
      conversation_.set_system(argument);
    const std::string system = conversation_.system();
    say(system.empty() ? "no system message" : "system: " + system);
  } else if (name == "think") {
    done = change_thinking(argument);
  } else if (name == "reset") {
    conversation_.clear();
    session.reset();
    say("forgotten");
  } else if (name == "save") {
    done = save(argument);
  } else if (name == "load") {
    done = load(argument);
  } else {
    say(fmt::format("no command /{}; /help lists them, and \"\"\" begins a message with a slash", name));
  }
  if (!done) say(done.error().message);
  return std::nullopt;
}

Result<void> Chat::change_thinking(const std::string& argument) {
  if (argument != "on" && argument != "off") return usage("/think on|off");
  conversation_.set_thinking(argument == "on");
  say("thinking " + argument);
  return {};
}

Result<void> Chat::save(const std::string& path) const {
  if (path.empty()) return usage("/save FILE");
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const std::string json = conversation_.file_json();
  AtomicFile file = TRY(AtomicFile::create(*storage, path));
  TRY(file.file().append(std::as_bytes(std::span(json.data(), json.size()))));
  TRY(file.commit());
  say(fmt::format("{}: {} messages saved", path, conversation_.n_messages()));
  return {};
}

Result<void> Chat::load(const std::string& path) {
  if (path.empty()) return usage("/load FILE");
  const std::unique_ptr<Storage> storage = make_posix_storage();
  Result<Conversation> loaded = Conversation::parse(TRY(read_argument(*storage, path)));
  if (!loaded) return std::move(loaded).error().in(path);
  conversation_ = std::move(loaded).value();
  say(fmt::format("{}: {} messages", path, conversation_.n_messages()));
  return {};
}

}  // namespace forebay::cli
