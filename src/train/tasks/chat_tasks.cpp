// Arithmetic and tool calls as conversations in ChatML, the way models/pebble.gguf has seen them. The model
// writes what follows "<think>\n": its thoughts, "</think>", and the answer.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/tasks/all_tasks.h"
#include "train/tasks/draws.h"
#include "train/tasks/tools.h"

namespace forebay::train {
namespace {

constexpr std::string_view kThinkEnd = "</think>";

std::string user_turn(std::string_view text) {
  return fmt::format("<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n", text);
}

/// What stands after the thoughts, without the blank lines around it; nothing when they never end.
std::string_view after_thoughts(std::string_view answer) {
  const size_t at = answer.find(kThinkEnd);
  if (at == std::string_view::npos) return {};
  answer.remove_prefix(at + kThinkEnd.size());
  while (answer.starts_with('\n')) answer.remove_prefix(1);
  while (answer.ends_with('\n')) answer.remove_suffix(1);
  return answer;
}

class ChatArithmetic : public Task {
 public:
  std::string_view name() const override { return "chat-arithmetic"; }
  std::string alphabet() const override { return {}; }  // text of a large vocabulary
  int64_t max_answer_bytes() const override { return 160; }
  Item item(Split split, uint64_t seed, uint64_t index) const override {
    return draw_item(name(), split, seed, index, [](Draws& draws) {
      std::string problem;
      int64_t result = 0;
      switch (draws.between(0, 3)) {
        case 0: {
          const int64_t a = draws.between(12, 99), b = draws.between(3, 99);
          problem = fmt::format("{} * {}", a, b);
          result = a * b;
          break;
        }
        case 1: {
          const int64_t a = draws.between(100, 9999), b = draws.between(100, 9999);
          problem = fmt::format("{} + {}", a, b);
          result = a + b;
          break;
        }
        case 2: {
          const int64_t a = draws.between(500, 9999), b = draws.between(100, a);
          problem = fmt::format("{} - {}", a, b);
          result = a - b;
          break;
        }
        default: {
          const int64_t a = draws.between(10, 999), b = draws.between(10, 999);
          const int64_t c = draws.between(1, std::min<int64_t>(a + b, 999));
          problem = fmt::format("{} + {} - {}", a, b, c);
          result = a + b - c;
        }
      }
      static constexpr std::string_view kForms[] = {"What is {}?", "Compute {}.", "Calculate {}", "{} = ?",
                                                    "How much is {}?"};
      const std::string text = fmt::format(fmt::runtime(draws.pick(kForms)), problem);
      return Item{.prompt = user_turn(text),
                  .answer = fmt::format("{} = {}\n</think>\n\n{}", problem, result, result),
                  .key = std::to_string(result)};
    });
  }
  Score score(const Item& item, std::string_view answer) const override {
    const std::string_view result = after_thoughts(answer);
    const bool number = !result.empty() && result.find_first_not_of("-0123456789") == std::string_view::npos;
    return {.reward = result == item.key ? 1.0 : 0.0, .format = number ? 1.0 : 0.0};
  }
};

std::string tool_json(const Tool& tool) {
  std::vector<std::string> properties, required;
  for (const ToolParameter& p : tool.parameters) {
    properties.push_back(fmt::format(R"("{}": {{"type": "{}"}})", p.name, p.integer ? "integer" : "string"));
    required.push_back(fmt::format("\"{}\"", p.name));
  }
  return fmt::format(
      R"({{"type": "function", "function": {{"name": "{}", "description": "{}", "parameters": {{"type": "object", "properties": {{{}}}, "required": [{}]}}}}}})",
      tool.name, tool.description, fmt::join(properties, ", "), fmt::join(required, ", "));
}

std::string call_xml(const ToolRequest& request) {
  std::string text = fmt::format("<tool_call>\n<function={}>\n", request.tool->name);
  for (size_t i = 0; i < request.values.size(); ++i)
    text += fmt::format("<parameter={}>\n{}\n</parameter>\n", request.tool->parameters[i].name,
                        request.values[i]);
  return text + "</function>\n</tool_call>";
}

/// Between `before` and `after`, which are taken off; false when they are not there.
bool take(std::string_view& text, std::string_view before, std::string_view after, std::string_view& inside) {
  if (!text.starts_with(before)) return false;
  const size_t end = text.find(after, before.size());
  if (end == std::string_view::npos) return false;
  inside = text.substr(before.size(), end - before.size());
  text.remove_prefix(end + after.size());
  return true;
}

/// Whether this is one call in the asked form, of whatever tool.
bool is_call(std::string_view text) {
  std::string_view inside;
  if (!take(text, "<tool_call>\n<function=", ">\n", inside) || inside.empty()) return false;
  while (text.starts_with("<parameter=")) {
    if (!take(text, "<parameter=", ">\n", inside) || inside.empty()) return false;
    if (!take(text, "", "\n</parameter>\n", inside)) return false;
  }
  return text == "</function>\n</tool_call>";
}

class ChatTools : public Task {
 public:
  std::string_view name() const override { return "chat-tools"; }
  std::string alphabet() const override { return {}; }
  int64_t max_answer_bytes() const override { return 320; }
  Item item(Split split, uint64_t seed, uint64_t index) const override {
    return draw_item(name(), split, seed, index, [](Draws& draws) {
      const ToolRequest request = draw_request(draws, draws.pick(all_tools()));
      std::string prompt =
          "<|im_start|>system\n# Tools\n\nYou have access to the following functions:\n\n<tools>";
      for (const Tool* tool :
           draw_offer(draws, static_cast<size_t>(draws.between(2, 4)), *request.tool, /*offered=*/true))
        prompt += "\n" + tool_json(*tool);
      prompt +=
          "\n</tools>\n\nIf you call a function, reply only in this format:\n\n<tool_call>\n"
          "<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
          "</function>\n</tool_call><|im_end|>\n";
      const std::string call = call_xml(request);
      return Item{.prompt = prompt + user_turn(request.text), .answer = "\n</think>\n\n" + call, .key = call};
    });
  }
  Score score(const Item& item, std::string_view answer) const override {
    const std::string_view call = after_thoughts(answer);
    return {.reward = call == item.key ? 1.0 : 0.0, .format = is_call(call) ? 1.0 : 0.0};
  }
};

}  // namespace

std::unique_ptr<Task> make_chat_arithmetic_task() {
  return std::make_unique<ChatArithmetic>();
}
std::unique_ptr<Task> make_chat_tool_task() {
  return std::make_unique<ChatTools>();
}

}  // namespace forebay::train
