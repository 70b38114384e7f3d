#include "tokenizer/chat_template.h"

#include <new>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/json.h"
#include "tokenizer/jinja/parser.h"

namespace forebay {

namespace {

/// Reasons may quote what a template or a conversation says; a message is one line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

Error error_of(Code code, int line, std::string reason) {
  return {code, fmt::format("template line {}: {}", line, one_line(std::move(reason)))};
}

}  // namespace

struct ChatTemplate::Impl {
  std::unique_ptr<const jinja::Template> parsed;
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  try {
    return ChatTemplate(std::make_shared<const Impl>(Impl{jinja::parse_template(jinja::repaired(source))}));
  } catch (jinja::Failure& failure) {
    return error_of(Code::kCorrupt, failure.line, std::move(failure.reason));
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, fmt::format("no memory to parse a template of {} bytes", source.size())};
  }
}

Result<std::string> ChatTemplate::render(const nlohmann::ordered_json& context, int64_t now_unix,
                                         const TemplateLimits& limits) const {
  if (!context.is_object())
    return Error{Code::kInvalidArgument,
                 fmt::format("a template's context must be an object, not {}", context.type_name())};
  jinja::Runtime runtime(limits, now_unix);
  try {
    const jinja::Value variables = jinja::from_json(runtime, context);
    runtime.begin();
    return jinja::Interpreter(runtime, jinja::Ref(&variables.as<jinja::Dict>())).run(*impl_->parsed);
  } catch (jinja::Failure& failure) {
    return error_of(Code::kInvalidArgument, failure.line != 0 ? failure.line : runtime.line,
                    std::move(failure.reason));
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, fmt::format("template line {}: no memory", runtime.line)};
  }
}

}  // namespace forebay
