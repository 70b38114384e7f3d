#include "server/messages.h"

#include <fmt/format.h>

#include "engine/reasoning.h"

namespace forebay {
namespace {

Result<Json> parse_calls(const Fields& message) {
  const Json* calls = TRY(message.list("tool_calls"));
  Json out = Json::array();
  if (calls == nullptr) return out;
  for (size_t i = 0; i < calls->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", message.path_of("tool_calls"), i);
    const Json& call = (*calls)[i];
    if (!call.is_object())
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: got {}, expected an object", path, describe(call))};
    const Fields fields(call, path);
    const std::string id = TRY(fields.string("id")).value_or("");
    const Json* function = TRY(fields.object("function"));
    if (function == nullptr) return fields.wrong("function", "an object");
    const Fields inner(*function, path + ".function");
    const std::string name = TRY(inner.required_string("name"));
    const Json* arguments = inner.find("arguments");
    if (arguments != nullptr && !arguments->is_string() && !arguments->is_object())
      return inner.wrong("arguments", "JSON text of an object");
    out.push_back(tool_call(id, name,
                            arguments == nullptr     ? "{}"
                            : arguments->is_string() ? arguments->get<std::string>()
                                                     : dump(*arguments)));
  }
  return out;
}

Result<Json> parse_message(const Json& message, const std::string& path) {
  if (!message.is_object())
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: got {}, expected an object", path, describe(message))};
  const Fields fields(message, path);
  const std::optional<std::string> role = TRY(fields.choice("role", "system|developer|user|assistant|tool"));
  if (!role) return fields.wrong("role", "one of system, developer, user, assistant, tool");
  TRY(fields.string("name"));
  if (*role == "assistant") {
    Json calls = TRY(parse_calls(fields));
    std::string content;
    if (fields.has("content")) content = TRY(parse_content(fields, "content"));
    const char* name = fields.has("reasoning_content") ? "reasoning_content" : "reasoning";
    std::string reasoning = TRY(fields.string(name)).value_or("");
    return assistant_message(std::move(content), std::move(reasoning), std::move(calls));
  }
  std::string content = TRY(parse_content(fields, "content"));
  Json out = {{"role", *role == "developer" ? "system" : *role}, {"content", std::move(content)}};
  if (*role == "tool") out["tool_call_id"] = TRY(fields.string("tool_call_id")).value_or("");
  return out;
}

}  // namespace

Result<std::string> parse_content(const Fields& message, std::string_view name) {
  const Json* content = message.find(name);
  if (content == nullptr || (!content->is_string() && !content->is_array()))
    return message.wrong(name, "a string or a list of text parts");
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    const Json& part = (*content)[i];
    const std::string path = fmt::format("{}[{}]", message.path_of(name), i);
    if (!part.is_object())
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: got {}, expected an object", path, describe(part))};
    const Fields fields(part, path);
    const std::string type = TRY(fields.required_string("type"));
    if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal")
      return fields.wrong("type", "text: this server reads nothing else");
    if (i > 0) text += '\n';
    text += TRY(fields.required_string(type == "refusal" ? "refusal" : "text"));
  }
  return text;
}

Json assistant_message(std::string content, std::string reasoning, Json tool_calls) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  const size_t open = content.find_first_not_of(" \n");
  if (reasoning.empty() && open != std::string::npos && content.compare(open, kOpen.size(), kOpen) == 0 &&
      content.find(kClose) != std::string::npos) {
    ReasoningSplitter splitter(/*inside=*/false);
    ReasoningSplitter::Piece piece = splitter.push(content), rest = splitter.finish();
    reasoning = piece.reasoning + rest.reasoning;
    content = piece.content + rest.content;
    content.erase(0, std::min(content.find_first_not_of('\n'), content.size()));
  }
  Json message = {{"role", "assistant"}, {"content", std::move(content)}};
  if (!reasoning.empty()) message["reasoning_content"] = std::move(reasoning);
  if (!tool_calls.empty()) message["tool_calls"] = std::move(tool_calls);
  return message;
}

Json tool_call(std::string_view id, std::string_view name, std::string_view arguments) {
  const bool none = arguments.find_first_not_of(" \n\t\r") == std::string_view::npos;
  const Result<Json> object = parse_object(none ? "{}" : arguments);
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", object ? *object : Json(arguments)}}}};
}

Result<Json> parse_messages(const Fields& body) {
  const Json* messages = TRY(body.required_list("messages"));
  if (messages->empty()) return body.refuse("messages", "no messages, expected at least one");
  Json out = Json::array();
  for (size_t i = 0; i < messages->size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    Json message = TRY(parse_message((*messages)[i], path));
    out.push_back(std::move(message));
  }
  return out;
}

Result<void> require_readable_calls(const Json& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].contains("tool_calls")) continue;
    const Json& calls = messages[i]["tool_calls"];
    for (size_t j = 0; j < calls.size(); ++j)
      if (const Json& arguments = calls[j]["function"]["arguments"]; !arguments.is_object())
        return Error{
            Code::kInvalidArgument,
            fmt::format("messages[{}].tool_calls[{}].function.arguments: got {}, expected JSON text of "
                        "an object",
                        i, j, describe(arguments))};
  }
  return {};
}

}  // namespace forebay
