#include "chat/tool_memory.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "chat/parameter_value.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

/// What an entry takes besides its texts: nodes and the strings' own sizes.
constexpr size_t kEntryBytes = 256;

size_t bytes_of(const ParsedAnswer& answer) {
  size_t bytes = kEntryBytes + answer.reasoning.size() + answer.content.size() + answer.text.size();
  for (const ParsedCall& call : answer.calls)
    bytes += kEntryBytes + call.id.size() + call.name.size() + call.arguments.size() + call.bytes.size();
  return bytes;
}

/// Absent when there is something besides text in it.
std::optional<std::string> text_of(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return std::string();
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) return std::nullopt;
  std::string text;
  for (const Json& part : *content) {
    if (!part.is_object() || part.value("type", Json()) != "text") return std::nullopt;
    const auto found = part.find("text");
    if (found == part.end() || !found->is_string()) return std::nullopt;
    text += found->get_ref<const std::string&>();
  }
  return text;
}

bool is_text(const Json& object, const char* key, std::string_view expected) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() && found->get_ref<const std::string&>() == expected;
}

/// Key order and white space do not count.
bool same_arguments(const Json& sent, const std::string& own) {
  if (sent.is_string() && sent.get_ref<const std::string&>() == own) return true;
  const nlohmann::json wanted = nlohmann::json::parse(own, nullptr, false);
  if (wanted.is_discarded()) return false;
  const std::string text =
      sent.is_string() ? sent.get<std::string>() : sent.dump(-1, ' ', false, Json::error_handler_t::replace);
  return nlohmann::json::parse(text, nullptr, false) == wanted;
}

bool same_calls(const Json& sent, const std::vector<ParsedCall>& own) {
  if (sent.size() != own.size()) return false;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!sent[i].is_object() || !is_text(sent[i], "id", own[i].id)) return false;
    const auto function = sent[i].find("function");
    if (function == sent[i].end() || !function->is_object() || !is_text(*function, "name", own[i].name))
      return false;
    const auto arguments = function->find("arguments");
    if (arguments == function->end() || !same_arguments(*arguments, own[i].arguments)) return false;
  }
  return true;
}

}  // namespace

void ToolMemory::forget(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  by_id_.erase(entry->answer.calls.front().id);
  entries_.erase(entry);
}

void ToolMemory::remember(const ParsedAnswer& answer) {
  if (answer.calls.empty() || answer.call_in_reasoning) return;
  const size_t bytes = bytes_of(answer);
  if (bytes > max_bytes_) return;
  const std::lock_guard lock(mutex_);
  if (const auto known = by_id_.find(answer.calls.front().id); known != by_id_.end()) forget(known->second);
  while (bytes_ + bytes > max_bytes_) forget(std::prev(entries_.end()));
  entries_.push_front({answer, bytes});
  by_id_[answer.calls.front().id] = entries_.begin();
  bytes_ += bytes;
}

bool ToolMemory::restore_one(Json& message) {
  if (!message.is_object() || !is_text(message, "role", "assistant")) return false;
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array() || calls->empty() || !(*calls)[0].is_object())
    return false;
  const auto id = (*calls)[0].find("id");
  if (id == (*calls)[0].end() || !id->is_string()) return false;
  const auto found = by_id_.find(id->get_ref<const std::string&>());
  if (found == by_id_.end()) return false;

  const ParsedAnswer& own = found->second->answer;
  const std::optional<std::string> content = text_of(message);
  if (!content || trimmed(*content) != trimmed(own.content) || !same_calls(*calls, own.calls)) return false;
  entries_.splice(entries_.begin(), entries_, found->second);
  message.erase("tool_calls");
  message["content"] = own.text;
  const auto reasoning = message.find("reasoning_content");
  const bool missing =
      reasoning == message.end() || reasoning->is_null() || (reasoning->is_string() && reasoning->empty());
  if (missing && !own.reasoning.empty()) message["reasoning_content"] = own.reasoning;
  return true;
}

std::vector<size_t> ToolMemory::restore(Json& messages) {
  std::vector<size_t> restored;
  if (!messages.is_array()) return restored;
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < messages.size(); ++i)
    if (restore_one(messages[i])) restored.push_back(i);
  return restored;
}

size_t ToolMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

size_t ToolMemory::n_answers() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace forebay
