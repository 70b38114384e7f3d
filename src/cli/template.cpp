// forebay template: a chat template over a conversation.
#include <cstdio>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/model_location.h"
#include "cli/model_text.h"
#include "cli/verbosity.h"
#include "gguf/text.h"
#include "tokenizer/chat_template.h"

namespace forebay::cli {
namespace {

using Json = nlohmann::ordered_json;

/// "2026-11-29", "2026-11-29T13:05:00", with an optional Z: UTC.
Result<int64_t> parse_time(const std::string& text) {
  const Error malformed{
      Code::kInvalidArgument,
      fmt::format("now: {} is not a date such as 2026-11-29 or 2026-11-29T13:05:00", gguf::quote(text, 40))};
  for (const char* format : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    std::tm time = {};
    const char* rest = ::strptime(text.c_str(), format, &time);
    if (rest == nullptr || (*rest != '\0' && std::string_view(rest) != "Z")) continue;
    return ::timegm(&time);
  }
  return malformed;
}

class TemplateCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  Result<std::string> source(Storage& storage, Json& context) const;

  std::string model_;
  std::string template_;
  std::string conversation_;
  Verbosity verbosity_;
};

void TemplateCommand::declare(FlagTable& flags) {
  flags.section("Options");
  flags.text("-m,--model", "FILE", model_, "the model whose template is used; the embedded model if absent");
  flags.text("--template", "FILE", template_, "a Jinja file instead of a model's template");
  flags.text(
      "--json", "FILE", conversation_,
      "the conversation, a JSON object; - is standard input. Its members are the template's variables: "
      "messages, tools, add_generation_prompt, enable_thinking, ...; \"now\" sets the clock");
  verbosity_.declare(flags);
}

Result<void> TemplateCommand::check() {
  TRY(verbosity_.check());
  if (conversation_.empty()) return Error{Code::kInvalidArgument, "--json is missing"};
  if (!model_.empty() && !template_.empty())
    return Error{Code::kInvalidArgument, "-m and --template exclude each other"};
  return {};
}

/// The template; a model also names its special tokens, where the conversation does not.
Result<std::string> TemplateCommand::source(Storage& storage, Json& context) const {
  if (!template_.empty()) return read_argument(storage, template_);
  const GgufFile file = TRY(GgufFile::open(storage, model_));
  if (!file.metadata().has("tokenizer.chat_template"))
    return Error{Code::kUnsupported,
                 fmt::format("{}: the file has no chat template (tokenizer.chat_template)", model_)};
  if (!context.contains("bos_token"))
    context["bos_token"] = special_text(file, "tokenizer.ggml.bos_token_id");
  if (!context.contains("eos_token"))
    context["eos_token"] = special_text(file, "tokenizer.ggml.eos_token_id");
  return file.metadata().get_string("tokenizer.chat_template");
}

Result<ExitCode> TemplateCommand::run(const FlagTable& flags) {
  if (model_.empty() && template_.empty()) model_ = TRY(embedded_model()).string();
  log_settings(flags);
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const std::string json = TRY(read_argument(*storage, conversation_));
  Json context;
  int64_t now = std::time(nullptr);
  try {
    context = Json::parse(json);
    if (!context.is_object())
      return Error{Code::kInvalidArgument, fmt::format("{}: not a JSON object", conversation_)};
    if (const auto clock = context.find("now"); clock != context.end() && clock->is_string()) {
      now = TRY(parse_time(clock->get<std::string>()));
      context.erase("now");
    }
  } catch (const nlohmann::json::exception& error) {
    return Error{Code::kCorrupt, fmt::format("{}: {}", conversation_, error.what())};
  }
  const std::string text = TRY(source(*storage, context));
  const std::string& name = template_.empty() ? model_ : template_;
  const Result<ChatTemplate> parsed = ChatTemplate::parse(text);
  if (!parsed) return Error(parsed.error()).in(name);
  Result<std::string> rendered = parsed->render(context, now);
  if (!rendered) return std::move(rendered).error().in(name);
  std::fwrite(rendered->data(), 1, rendered->size(), stdout);
  return ExitCode::kDone;
}

}  // namespace

CommandInfo template_command() {
  return {.name = "template",
          .summary = "render a conversation with a chat template",
          .usage = "[-m MODEL | --template FILE] --json CONVERSATION.json",
          .examples = {{"forebay template -m model.gguf --json chat.json", "the text that the model reads"},
                       {"forebay template --template qwen.jinja --json - < chat.json", ""}},
          .details =
              "Prints exactly what the template makes of the conversation. A file saved with /save in a chat "
              "is such a conversation.",
          .make = [] { return std::unique_ptr<Command>(std::make_unique<TemplateCommand>()); }};
}

}  // namespace forebay::cli
