#include "eval/scr_case.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

/// Stands where reasoning was, while the template runs: a character that no text has.
constexpr std::string_view kMark = "\xEE\x80\x80";

Error bad_case(std::string message) {
  return {Code::kCorrupt, std::move(message)};
}
Error refuse(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

Result<Json> parse_conversation(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    return bad_case(fmt::format("not JSON: {}", error.what()));
  }
  if (!json.is_object() || !json.contains("messages") || !json["messages"].is_array())
    return bad_case("a conversation is an object with \"messages\", a list");
  for (const Json& message : json["messages"])
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      return bad_case("every message needs a \"role\", a string");
  if (json.contains("edits") && !json["edits"].is_array()) return bad_case("\"edits\" must be a list");
  return json;
}

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

bool has_text(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; !from.empty() && (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// All but the first line, or of one line all but its first half.
std::string folded(const std::string& text) {
  const size_t end = text.find('\n');
  if (end != std::string::npos && end + 1 < text.size())
    return fmt::format("{}\n[{} more lines]", text.substr(0, end),
                       std::count(text.begin() + static_cast<ptrdiff_t>(end) + 1, text.end(), '\n') + 1);
  const size_t half = text.rfind(' ', text.size() / 2);
  return half == std::string::npos ? text : text.substr(0, half) + " [...]";
}

/// The edit as an object, also where the file names none.
Result<Json> choose_edit(const Json& conversation, int64_t edit) {
  const Json& messages = conversation["messages"];
  if (conversation.contains("edits")) {
    const Json& edits = conversation["edits"];
    if (edit < 0 || edit >= static_cast<int64_t>(edits.size()))
      return refuse(fmt::format("edit {}: the conversation has {}", edit, edits.size()));
    const Json& chosen = edits[edit];
    if (!chosen.is_object() || !chosen.contains("message") || !chosen["message"].is_number_integer())
      return bad_case(fmt::format("edit {} needs a \"message\", an index", edit));
    const auto index = chosen["message"].get<int64_t>();
    if (index < 0 || index >= static_cast<int64_t>(messages.size()))
      return bad_case(
          fmt::format("edit {}: message {}, the conversation has {}", edit, index, messages.size()));
    return chosen;
  }
  if (edit < 0 || edit >= static_cast<int64_t>(messages.size()))
    return refuse(fmt::format("edit {}: the conversation has {} messages", edit, messages.size()));
  Json chosen = {{"message", edit}};
  const Json& message = messages[edit];
  if (has_text(message, "reasoning_content"))
    chosen["reasoning"] = message["reasoning_content"];
  else if (has_text(message, "content"))
    chosen["content"] = folded(text_of(message, "content"));
  else
    return refuse(fmt::format("edit {}: the message has no text", edit));
  return chosen;
}

}  // namespace

Result<int64_t> n_scr_edits(std::string_view json) {
  const Json conversation = TRY(parse_conversation(json));
  return static_cast<int64_t>(conversation.contains("edits") ? conversation["edits"].size()
                                                             : conversation["messages"].size());
}

ScrSpans split_edit(std::vector<int32_t> before, std::vector<int32_t> after) {
  const auto [old_end, new_end] = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  const auto n_a = old_end - before.begin();
  const auto most = static_cast<ptrdiff_t>(std::min(before.size(), after.size())) - n_a;
  ptrdiff_t n_c = 0;
  while (n_c < most && before[before.size() - 1 - n_c] == after[after.size() - 1 - n_c]) ++n_c;
  return {.a = {before.begin(), before.begin() + n_a},
          .b = {before.begin() + n_a, before.end() - n_c},
          .b_new = {after.begin() + n_a, after.end() - n_c},
          .c = {after.end() - n_c, after.end()},
          .d = {}};
}

Result<ScrCase> scr_case_from_conversation(const Engine& engine, std::string_view json, int64_t edit) {
  Json conversation = TRY(parse_conversation(json));
  const Json chosen = TRY(choose_edit(conversation, edit));
  conversation.erase("edits");
  const auto index = chosen["message"].get<size_t>();
  conversation["add_generation_prompt"] = true;

  std::string answer;
  if (const Json& messages = conversation["messages"];
      messages.size() > 1 && messages.back()["role"] == "assistant") {
    if (index + 1 == messages.size()) return refuse(fmt::format("edit {}: the message is the answer", edit));
    const std::string reasoning = text_of(messages.back(), "reasoning_content");
    answer = (reasoning.empty() ? "" : reasoning + "\n</think>\n\n") + text_of(messages.back(), "content") +
             "<|im_end|>\n";
    if (!conversation.contains("enable_thinking")) conversation["enable_thinking"] = !reasoning.empty();
    conversation["messages"].erase(conversation["messages"].size() - 1);
  }

  // A member that is added or removed moves the others: references come last.
  Json& message = conversation["messages"][index];
  const std::string content = text_of(message, "content");
  message.erase("reasoning_content");
  std::string before, after;
  if (has_text(chosen, "reasoning")) {
    message["content"] = std::string(kMark) + content;
    const std::string marked = TRY(engine.render_chat(conversation.dump()));
    if (marked.find(kMark) == std::string::npos)
      return refuse(fmt::format("edit {}: the template does not print the message", edit));
    before = replaced(marked, std::string(kMark),
                      fmt::format("<think>\n{}\n</think>\n\n", text_of(chosen, "reasoning")));
    after = replaced(marked, std::string(kMark), "");
  } else {
    before = TRY(engine.render_chat(conversation.dump()));
    message["content"] = has_text(chosen, "content")
                             ? text_of(chosen, "content")
                             : replaced(content, text_of(chosen, "replace"), text_of(chosen, "with"));
    after = TRY(engine.render_chat(conversation.dump()));
  }
  if (before == after) return refuse(fmt::format("edit {}: it changes nothing", edit));
  std::vector<int32_t> tokens_before = TRY(engine.tokenize(before));
  std::vector<int32_t> tokens_after = TRY(engine.tokenize(after));
  ScrCase out{text_of(chosen, "name"), text_of(chosen, "kind"),
              split_edit(std::move(tokens_before), std::move(tokens_after))};
  if (out.spans.c.empty()) return refuse(fmt::format("edit {}: nothing follows it", edit));
  if (out.name.empty()) out.name = fmt::format("edit {}", edit);
  if (!answer.empty()) out.spans.d = TRY(engine.tokenize(answer));
  return out;
}

}  // namespace forebay
