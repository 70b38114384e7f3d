#include <fmt/format.h>

#include "server/messages.h"
#include "server/openai_responses.h"
#include "server/parameters.h"

namespace forebay {
namespace {

constexpr size_t kMostStored = 1024;

/// Items of one answer (reasoning, text, calls) are one message of a conversation.
class Conversation {
 public:
  explicit Conversation(Json messages) : messages_(std::move(messages)) {}

  void add(Json message) {
    flush();
    messages_.push_back(std::move(message));
  }
  void add_reasoning(const std::string& text) {
    if (!text_.empty() || !calls_.empty()) flush();
    reasoning_ += text;
    open_ = true;
  }
  void add_text(const std::string& text) {
    if (!calls_.empty()) flush();
    if (!text_.empty()) text_ += '\n';
    text_ += text;
    open_ = true;
  }
  void add_call(Json call) {
    calls_.push_back(std::move(call));
    open_ = true;
  }
  Json take() {
    flush();
    return std::move(messages_);
  }

 private:
  void flush() {
    if (open_)
      messages_.push_back(assistant_message(std::exchange(text_, {}), std::exchange(reasoning_, {}),
                                            std::exchange(calls_, Json::array())));
    open_ = false;
  }

  Json messages_;
  std::string text_, reasoning_;
  Json calls_ = Json::array();
  bool open_ = false;
};

Result<void> parse_item(const Json& item, const std::string& path, Conversation& out) {
  if (!item.is_object())
    return Error{Code::kInvalidArgument, fmt::format("{}: got {}, expected an object", path, describe(item))};
  const Fields fields(item, path);
  const std::string type = TRY(fields.string("type")).value_or("message");
  if (type == "message") {
    const std::optional<std::string> role = TRY(fields.choice("role", "system|developer|user|assistant"));
    if (!role) return fields.wrong("role", "one of system, developer, user, assistant");
    std::string content = TRY(parse_content(fields, "content"));
    if (*role == "assistant")
      out.add_text(content);
    else
      out.add({{"role", *role == "developer" ? "system" : *role}, {"content", std::move(content)}});
  } else if (type == "function_call") {
    const std::string id = TRY(fields.required_string("call_id"));
    const std::string name = TRY(fields.required_string("name"));
    const std::string arguments = TRY(fields.required_string("arguments"));
    out.add_call(tool_call(id, name, arguments));
  } else if (type == "function_call_output") {
    const std::string id = TRY(fields.required_string("call_id"));
    std::string content = TRY(parse_content(fields, "output"));
    out.add({{"role", "tool"}, {"content", std::move(content)}, {"tool_call_id", id}});
  } else if (type == "reasoning") {
    const Json* parts = TRY(fields.list("content"));
    if (parts == nullptr) return {};
    for (size_t i = 0; i < parts->size(); ++i) {
      const std::string part_path = fmt::format("{}.content[{}]", path, i);
      if (!(*parts)[i].is_object()) return Error{Code::kInvalidArgument, part_path + ": expected an object"};
      out.add_reasoning(TRY(Fields((*parts)[i], part_path).required_string("text")));
    }
  } else {
    return fields.wrong("type", "one of message, function_call, function_call_output, reasoning");
  }
  return {};
}

/// The functions stand one level higher than in chat completions.
Result<Json> parse_response_tools(const Fields& body) {
  const Json* tools = TRY(body.list("tools"));
  if (tools == nullptr || tools->empty()) return Json();
  Json out = Json::array();
  for (size_t i = 0; i < tools->size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    const Json& tool = (*tools)[i];
    if (!tool.is_object())
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: got {}, expected an object", path, describe(tool))};
    const Fields fields(tool, path);
    const std::string type = TRY(fields.string("type")).value_or("");
    if (type != "function") return fields.wrong("type", "\"function\": this server runs no tools itself");
    if (TRY(fields.required_string("name")).empty()) return fields.wrong("name", "a name");
    TRY(fields.string("description"));
    TRY(fields.object("parameters"));
    Json function = Json::object();
    for (const char* key : {"name", "description", "parameters"})
      if (fields.has(key)) function[key] = tool[key];
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

}  // namespace

void ResponseStore::put(const std::string& id, Json messages) {
  const std::lock_guard lock(mutex_);
  entries_.emplace_front(id, std::move(messages));
  by_id_[id] = entries_.begin();
  if (entries_.size() <= kMostStored) return;
  by_id_.erase(entries_.back().first);
  entries_.pop_back();
}

Json ResponseStore::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

Result<ResponsesRequest> parse_responses_request(const Json& body, const ModelInfo& model,
                                                 ResponseStore& store) {
  const Fields fields(body);
  ResponsesRequest request;
  ChatRequest& chat = request.chat;
  chat.options = TRY(parse_answer_options(fields, Protocol::kResponses, model));
  if (chat.options.n != 1) return fields.refuse("n", "only 1 is possible");
  if (TRY(fields.boolean("background")).value_or(false))
    return fields.refuse("background", "is not supported");
  request.store = TRY(fields.boolean("store")).value_or(true);

  Json earlier = Json::array();
  if (const auto id = TRY(fields.string("previous_response_id"))) {
    earlier = store.find(*id);
    if (earlier.is_null())
      return Error{Code::kNotFound, fmt::format("previous_response_id: no response '{}' is stored", *id)};
  }
  if (const auto instructions = TRY(fields.string("instructions"))) {
    earlier.insert(earlier.begin(), Json{{"role", "system"}, {"content", *instructions}});
    request.n_instructions = 1;
  }
  Conversation conversation(std::move(earlier));
  const Json* input = fields.find("input");
  if (input != nullptr && input->is_string()) {
    conversation.add({{"role", "user"}, {"content", *input}});
  } else if (input != nullptr && input->is_array() && !input->empty()) {
    for (size_t i = 0; i < input->size(); ++i)
      TRY(parse_item((*input)[i], fmt::format("input[{}]", i), conversation));
  } else {
    return fields.wrong("input", "a string or a list of items, not empty");
  }
  chat.messages = conversation.take();
  chat.tools = TRY(parse_response_tools(fields));
  chat.tool_choice = TRY(parse_tool_choice(fields, chat.tools));
  chat.parallel_calls = TRY(fields.boolean("parallel_tool_calls")).value_or(true);
  for (const char* key : {"instructions", "metadata", "previous_response_id", "temperature", "top_p",
                          "max_output_tokens", "tools", "tool_choice", "reasoning", "text"})
    request.echo[key] = body.contains(key) ? body[key] : Json();
  if (request.echo["tools"].is_null()) request.echo["tools"] = Json::array();
  if (request.echo["tool_choice"].is_null()) request.echo["tool_choice"] = "auto";
  request.echo["parallel_tool_calls"] = chat.parallel_calls;
  return request;
}

}  // namespace forebay
