#include <fmt/format.h>

#include "server/anthropic.h"
#include "server/messages.h"
#include "server/parameters.h"

namespace forebay {
namespace {

Error not_an_object(const std::string& path, const Json& value) {
  return {Code::kInvalidArgument, fmt::format("{}: got {}, expected an object", path, describe(value))};
}

/// One message's blocks, sorted into what templates know.
struct Blocks {
  std::string text, thinking;
  Json calls = Json::array();
  Json messages = Json::array();  // complete ones, in order

  void add_text(const std::string& more) {
    if (!text.empty()) text += '\n';
    text += more;
  }
  void flush_user() {
    if (!text.empty()) messages.push_back({{"role", "user"}, {"content", std::exchange(text, {})}});
  }
};

Result<void> parse_block(const Fields& block, bool assistant, Blocks& out) {
  const std::string type = TRY(block.required_string("type"));
  if (type == "text") {
    out.add_text(TRY(block.required_string("text")));
  } else if (type == "thinking" && assistant) {
    out.thinking += TRY(block.required_string("thinking"));
  } else if (type == "redacted_thinking" && assistant) {
    return {};
  } else if (type == "tool_use" && assistant) {
    const std::string id = TRY(block.required_string("id"));
    const std::string name = TRY(block.required_string("name"));
    const Json* input = TRY(block.object("input"));
    if (input == nullptr) return block.wrong("input", "an object");
    out.calls.push_back(tool_call(id, name, dump(*input)));
  } else if (type == "tool_result" && !assistant) {
    out.flush_user();
    const std::string id = TRY(block.required_string("tool_use_id"));
    std::string content;
    if (block.has("content")) content = TRY(parse_content(block, "content"));
    if (TRY(block.boolean("is_error")).value_or(false)) content.insert(0, "Error: ");
    out.messages.push_back({{"role", "tool"}, {"content", content}, {"tool_call_id", id}});
  } else {
    return block.wrong("type", assistant ? "one of text, thinking, tool_use" : "one of text, tool_result");
  }
  return {};
}

Result<void> parse_message(const Json& message, const std::string& path, Json& out) {
  if (!message.is_object()) return not_an_object(path, message);
  const Fields fields(message, path);
  const std::optional<std::string> role = TRY(fields.choice("role", "user|assistant|system"));
  if (!role) return fields.wrong("role", "one of user, assistant");
  const Json* content = fields.find("content");
  if (content == nullptr || (!content->is_string() && !content->is_array()))
    return fields.wrong("content", "a string or a list of blocks");
  const bool assistant = *role == "assistant";
  Blocks blocks;
  if (content->is_string()) {
    blocks.text = content->get<std::string>();
  } else {
    for (size_t i = 0; i < content->size(); ++i) {
      const std::string block_path = fmt::format("{}.content[{}]", path, i);
      if (!(*content)[i].is_object()) return not_an_object(block_path, (*content)[i]);
      TRY(parse_block(Fields((*content)[i], block_path), assistant, blocks));
    }
  }
  if (assistant) {
    out.push_back(
        assistant_message(std::move(blocks.text), std::move(blocks.thinking), std::move(blocks.calls)));
    return {};
  }
  if (!blocks.text.empty() || blocks.messages.empty())
    blocks.messages.push_back({{"role", *role}, {"content", blocks.text}});
  for (Json& one : blocks.messages) out.push_back(std::move(one));
  return {};
}

/// As OpenAI's: that is what chat templates were written for.
Result<Json> parse_anthropic_tools(const Fields& body) {
  const Json* tools = TRY(body.list("tools"));
  if (tools == nullptr || tools->empty()) return Json();
  Json out = Json::array();
  for (size_t i = 0; i < tools->size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    if (!(*tools)[i].is_object()) return not_an_object(path, (*tools)[i]);
    const Fields tool((*tools)[i], path);
    if (const auto type = TRY(tool.string("type")); type && *type != "custom")
      return tool.wrong("type", "custom: this server runs no tools itself");
    const std::string name = TRY(tool.required_string("name"));
    if (name.empty()) return tool.wrong("name", "a name");
    const std::string description = TRY(tool.string("description")).value_or("");
    const Json* schema = TRY(tool.object("input_schema"));
    if (schema == nullptr) return tool.wrong("input_schema", "an object");
    Json function = {{"name", name}};
    if (!description.empty()) function["description"] = description;
    function["parameters"] = *schema;
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

Result<void> parse_choice(const Fields& body, ChatRequest& request) {
  const Json* choice = TRY(body.object("tool_choice"));
  if (choice == nullptr) return {};
  const Fields fields(*choice, "tool_choice");
  const std::optional<std::string> type = TRY(fields.choice("type", "auto|any|tool|none"));
  if (!type) return fields.wrong("type", "one of auto, any, tool, none");
  if (*type == "any") request.tool_choice.kind = ToolChoice::Kind::kRequired;
  if (*type == "none") request.tool_choice.kind = ToolChoice::Kind::kNone;
  if (*type == "tool") request.tool_choice = {ToolChoice::Kind::kNamed, TRY(fields.required_string("name"))};
  request.parallel_calls = !TRY(fields.boolean("disable_parallel_tool_use")).value_or(false);
  return check_tool_choice(request.tool_choice, request.tools, "tool_choice");
}

}  // namespace

Result<ChatRequest> parse_anthropic_request(const Json& body, const ModelInfo& model, bool counting) {
  Json with_limit;
  if (counting && !body.contains("max_tokens")) {
    with_limit = body;
    with_limit["max_tokens"] = 1;
  }
  const Fields fields(with_limit.is_null() ? body : with_limit);
  ChatRequest request;
  request.options = TRY(parse_answer_options(fields, Protocol::kMessages, model));
  if (const Json* metadata = fields.find("metadata")) {
    const Fields inner(*metadata, "metadata");
    if (auto user = TRY(inner.string("user_id"))) request.options.client = *user;
  }
  if (fields.has("system")) {
    std::string system = TRY(parse_content(fields, "system"));
    request.messages.push_back({{"role", "system"}, {"content", std::move(system)}});
  }
  const Json* messages = TRY(fields.required_list("messages"));
  if (messages->empty()) return fields.refuse("messages", "no messages, expected at least one");
  for (size_t i = 0; i < messages->size(); ++i)
    TRY(parse_message((*messages)[i], fmt::format("messages[{}]", i), request.messages));
  request.tools = TRY(parse_anthropic_tools(fields));
  TRY(parse_choice(fields, request));
  return request;
}

}  // namespace forebay
