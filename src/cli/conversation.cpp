#include "cli/conversation.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gguf/text.h"

namespace forebay::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes that are not UTF-8 become U+FFFD: JSON text holds nothing else.
std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

bool is_system(const Json& message) {
  const auto role = message.find("role");
  return role != message.end() && *role == "system";
}

Result<void> check_messages(const Json& conversation) {
  const auto messages = conversation.find("messages");
  if (messages == conversation.end() || !messages->is_array())
    return Error{Code::kCorrupt, "a conversation needs \"messages\", a list"};
  for (size_t i = 0; i < messages->size(); ++i) {
    const Json& message = (*messages)[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      return Error{Code::kCorrupt, fmt::format("message {} needs a \"role\", a string", i)};
  }
  const auto thinking = conversation.find("enable_thinking");
  if (thinking != conversation.end() && !thinking->is_boolean())
    return Error{Code::kCorrupt, "\"enable_thinking\" must be true or false"};
  return {};
}

}  // namespace

struct Conversation::Impl {
  Json json = {{"messages", Json::array()}};

  Json& messages() { return json["messages"]; }
};

Conversation::Conversation() : impl_(std::make_unique<Impl>()) {}
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;
Conversation::~Conversation() = default;

Result<Conversation> Conversation::parse(std::string_view text) {
  Conversation conversation;
  try {
    conversation.impl_->json = Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    return Error{Code::kCorrupt, fmt::format("not JSON: {}", error.what())};
  }
  if (!conversation.impl_->json.is_object())
    return Error{Code::kCorrupt, "a conversation is an object with \"messages\""};
  TRY(check_messages(conversation.impl_->json));
  conversation.impl_->json.erase("add_generation_prompt");
  return conversation;
}

void Conversation::set_system(std::string_view text) {
  Json& messages = impl_->messages();
  if (!messages.empty() && is_system(messages[0])) messages.erase(0);
  if (!text.empty()) messages.insert(messages.begin(), Json{{"role", "system"}, {"content", text}});
}

std::string Conversation::system() const {
  const Json& messages = impl_->messages();
  if (messages.empty() || !is_system(messages[0])) return {};
  const auto content = messages[0].find("content");
  return content != messages[0].end() && content->is_string() ? content->get<std::string>() : std::string();
}

void Conversation::set_thinking(std::optional<bool> on) {
  if (on)
    impl_->json["enable_thinking"] = *on;
  else
    impl_->json.erase("enable_thinking");
}

std::optional<bool> Conversation::thinking() const {
  const auto thinking = impl_->json.find("enable_thinking");
  return thinking == impl_->json.end() ? std::nullopt : std::optional(thinking->get<bool>());
}

void Conversation::add_user(std::string_view text) {
  impl_->messages().push_back({{"role", "user"}, {"content", text}});
}

void Conversation::add_assistant(std::string_view content, std::string_view reasoning) {
  Json message = {{"role", "assistant"}, {"content", content}};
  if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  impl_->messages().push_back(std::move(message));
}

void Conversation::drop_last() {
  Json& messages = impl_->messages();
  if (!messages.empty()) messages.erase(messages.size() - 1);
}

void Conversation::clear() {
  const std::string kept = system();
  impl_->messages().clear();
  set_system(kept);
}

size_t Conversation::n_messages() const {
  const Json& messages = impl_->messages();
  return messages.size() - (!messages.empty() && is_system(messages[0]) ? 1 : 0);
}

std::string Conversation::prompt_json() const {
  Json prompt = impl_->json;
  prompt["add_generation_prompt"] = true;
  return dumped(prompt, -1);
}

std::string Conversation::file_json() const {
  return dumped(impl_->json, 2) + '\n';
}

}  // namespace forebay::cli
