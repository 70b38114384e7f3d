#include "server/prompt_text.h"

#include <algorithm>

#include "chat/reasoning_budget.h"
#include "engine/reasoning.h"
#include "gguf/gguf.h"
#include "server/messages.h"
#include "tokenizer/tokenizer.h"

namespace forebay {
namespace {

/// A code point that Unicode promises never to assign; one in a request is left out of what the model reads.
constexpr std::string_view kMark = "\xEF\xB7\x90";

constexpr size_t kToolMemoryBytes = 32 << 20;

void erase_marks(std::string& text) {
  for (size_t at = 0; (at = text.find(kMark, at)) != std::string::npos;) text.erase(at, kMark.size());
}

std::vector<AddedTokens::Token> control_tokens(const Tokenizer* tokenizer) {
  std::vector<AddedTokens::Token> tokens;
  if (tokenizer == nullptr) return tokens;
  for (int32_t id = 0; id < tokenizer->n_tokens(); ++id)
    if (tokenizer->kind(id) == TokenKind::kControl && !tokenizer->vocabulary().tokens[id].empty())
      tokens.push_back({tokenizer->vocabulary().tokens[id], id});
  return tokens;
}

/// One system message in front: some templates allow no other place.
Json with_system_first(const Json& messages) {
  Json first = {{"role", "system"}, {"content", ""}}, rest = Json::array();
  std::string text;
  for (const Json& message : messages) {
    if (message["role"] != "system") {
      rest.push_back(message);
      continue;
    }
    if (!text.empty()) text += "\n\n";
    text += message["content"].get<std::string>();
  }
  first["content"] = text;
  Json out = Json::array({first});
  for (Json& message : rest) out.push_back(std::move(message));
  return out;
}

}  // namespace

PromptMaker::PromptMaker(const Engine& engine)
    : engine_(engine), control_(control_tokens(engine.tokenizer())), tool_memory_(kToolMemoryBytes) {
  if (const auto source = engine.file().metadata().get_string("tokenizer.chat_template"))
    style_ = ChatStyle::of_template(*source);
  if (engine.tokenizer() == nullptr) return;
  constraints_.emplace(*engine.tokenizer());
  tool_token_ = engine.tokenizer()->find_special(kToolOpen);
}

void PromptMaker::mark(std::string& text) const {
  erase_marks(text);
  // Tags of thinking too, so that a quoted one is not taken for the model's own.
  const auto next_tag = [&](size_t from) {
    return std::min(text.find(kThinkOpen, from), text.find(kThinkClose, from));
  };
  for (size_t from = 0;;) {
    const auto token = control_.find(text, from);
    const size_t at = std::min(token ? token->offset : std::string::npos, next_tag(from));
    if (at == std::string::npos) return;
    size_t inside = at + 1;
    while (inside < text.size() && (static_cast<unsigned char>(text[inside]) & 0xc0) == 0x80) ++inside;
    text.insert(inside, kMark);
    from = inside + kMark.size();
  }
}

void PromptMaker::mark_strings(Json& json) const {
  if (json.is_string()) {
    mark(json.get_ref<std::string&>());
  } else if (json.is_array()) {
    for (Json& one : json) mark_strings(one);
  } else if (json.is_object()) {
    Json out = Json::object();
    for (auto& [key, value] : json.items()) {
      std::string marked = key;
      mark(marked);
      mark_strings(value);
      out[marked] = std::move(value);
    }
    json = std::move(out);
  }
}

Result<std::string> PromptMaker::marked_text(const ChatRequest& request) {
  Json messages = request.messages;
  std::vector<bool> own(messages.size());
  for (size_t i : tool_memory_.restore(messages)) own[i] = true;
  TRY(require_readable_calls(messages));
  for (size_t i = 0; i < messages.size(); ++i) {
    // What the model itself wrote keeps its tags.
    Json kept = own[i] ? messages[i]["content"] : Json();
    mark_strings(messages[i]);
    if (own[i]) messages[i]["content"] = std::move(kept);
  }
  Json conversation = request.template_values;
  conversation["messages"] = std::move(messages);
  if (request.tools.is_array()) {
    conversation["tools"] = request.tools;
    mark_strings(conversation["tools"]);
  }
  conversation["add_generation_prompt"] = true;
  if (request.options.thinking) conversation["enable_thinking"] = *request.options.thinking;
  Result<std::string> text = engine_.render_chat(dump(conversation));
  if (text || text.error().code != Code::kInvalidArgument) return text;
  conversation["messages"] = with_system_first(conversation["messages"]);
  Result<std::string> again = engine_.render_chat(dump(conversation));
  if (again) return again;
  return std::move(text).error().in("messages");
}

Result<std::vector<int32_t>> PromptMaker::encode(std::string_view marked) const {
  std::vector<int32_t> ids;
  const auto append_plain = [&](std::string_view text) -> Result<void> {
    if (text.empty()) return {};
    std::string clean(text);
    erase_marks(clean);
    const std::vector<int32_t> more = engine_.tokenizer()->encode(clean, {.parse_special = false});
    ids.insert(ids.end(), more.begin(), more.end());
    return {};
  };
  size_t from = 0;
  while (const auto token = control_.find(marked, from)) {
    TRY(append_plain(marked.substr(from, token->offset - from)));
    ids.push_back(token->id);
    from = token->offset + token->n_bytes;
  }
  TRY(append_plain(marked.substr(from)));
  return ids;
}

Result<Prompt> PromptMaker::chat(const ChatRequest& request) {
  Prompt prompt;
  prompt.text = TRY(marked_text(request));
  if (request.options.thinking == false) prompt.text = without_thinking(std::move(prompt.text));
  prompt.starts_thinking = ends_inside_thinking(prompt.text);
  if (engine_.tokenizer() == nullptr) return engine_.tokenize("").error();
  std::optional<TokenMemory::Known> known = token_memory_.find(prompt.text);
  // Tokens do not reach over a control token.
  if (known && known->n_bytes < prompt.text.size()) {
    const auto next = control_.find(prompt.text, known->n_bytes);
    if (!next || next->offset != known->n_bytes) known.reset();
  }
  if (known) prompt.ids = std::move(known->ids);
  const std::vector<int32_t> rest =
      TRY(encode(std::string_view(prompt.text).substr(known ? known->n_bytes : 0)));
  prompt.ids.insert(prompt.ids.end(), rest.begin(), rest.end());
  const Tokenizer& tokenizer = *engine_.tokenizer();
  if (const auto bos = tokenizer.bos();
      tokenizer.add_bos() && bos && (prompt.ids.empty() || prompt.ids[0] != *bos))
    prompt.ids.insert(prompt.ids.begin(), *bos);
  return prompt;
}

Result<Prompt> PromptMaker::plain(std::string_view text, bool control) const {
  Prompt prompt;
  prompt.text = text;
  prompt.ids = TRY(engine_.tokenize(text, control));
  return prompt;
}

Result<std::string> PromptMaker::render(const ChatRequest& request) {
  std::string text = TRY(marked_text(request));
  erase_marks(text);
  return text;
}

}  // namespace forebay
