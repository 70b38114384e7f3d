// T6 and T7: choose a tool and fill in its arguments as strict JSON, or say that no tool fits.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/tasks/all_tasks.h"
#include "train/tasks/draws.h"
#include "train/tasks/strict_json.h"
#include "train/tasks/tools.h"

namespace forebay::train {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kNone = R"({"tool":null})";

/// What a call must be, as the text of a JSON object.
std::string call_text(const ToolRequest& request) {
  std::vector<std::string> arguments;
  for (size_t i = 0; i < request.values.size(); ++i) {
    const ToolParameter& p = request.tool->parameters[i];
    arguments.push_back(p.integer ? fmt::format("\"{}\":{}", p.name, request.values[i])
                                  : fmt::format("\"{}\":\"{}\"", p.name, request.values[i]));
  }
  return fmt::format("{{\"tool\":\"{}\",\"args\":{{{}}}}}", request.tool->name, fmt::join(arguments, ","));
}

/// Whether `call` is a call of one of our tools with arguments of the right names and types.
bool fits_schema(const Json& call) {
  if (!call.is_object() || !call.contains("tool")) return false;
  if (call["tool"].is_null()) return call.size() == 1;
  if (call.size() != 2 || !call["tool"].is_string() || !call.contains("args") || !call["args"].is_object())
    return false;
  const auto tool = std::ranges::find(all_tools(), call["tool"].get<std::string>(), &Tool::name);
  if (tool == all_tools().end() || call["args"].size() != tool->parameters.size()) return false;
  return std::ranges::all_of(tool->parameters, [&](const ToolParameter& p) {
    const auto value = call["args"].find(std::string(p.name));
    return value != call["args"].end() && (p.integer ? value->is_number_integer() : value->is_string());
  });
}

/// "read_file(path:str) set_timer(minutes:int,label:str)\nShow me the file /etc/hosts\n" ->
/// {"tool":"read_file","args":{"path":"/etc/hosts"}}
class ToolCalls : public Task {
 public:
  explicit ToolCalls(bool with_unanswerable) : with_unanswerable_(with_unanswerable) {}
  std::string_view name() const override { return with_unanswerable_ ? "tools-or-none" : "tools"; }
  std::string alphabet() const override {
    return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n.,:;?!/_-(){}[]\"<>=";
  }
  int64_t max_answer_bytes() const override { return 96; }
  Item item(Split split, uint64_t seed, uint64_t index) const override {
    return draw_item(name(), split, seed, index, [this](Draws& draws) {
      const Tool& wanted = draws.pick(all_tools());
      const bool answerable = !with_unanswerable_ || draws.between(0, 1) == 0;
      const ToolRequest request = draw_request(draws, wanted);
      std::string prompt;
      for (const Tool* tool :
           draw_offer(draws, static_cast<size_t>(draws.between(2, 3)), wanted, answerable)) {
        std::vector<std::string> parameters;
        for (const ToolParameter& p : tool->parameters)
          parameters.push_back(fmt::format("{}:{}", p.name, p.integer ? "int" : "str"));
        prompt += fmt::format("{}{}({})", prompt.empty() ? "" : " ", tool->name, fmt::join(parameters, ","));
      }
      const std::string answer = answerable ? call_text(request) : std::string(kNone);
      return Item{.prompt = prompt + "\n" + request.text + "\n",
                  .answer = answer,
                  .key = answer,
                  .answerable = answerable};
    });
  }
  Score score(const Item& item, std::string_view answer) const override {
    const std::optional<Json> call = parse_strict_json(answer);
    if (!call || !fits_schema(*call)) return {};
    // An exact reward: the same names, types and values; the order of names is free.
    return {.reward = *call == Json::parse(item.key) ? 1.0 : 0.0,
            .format = 1.0,
            .declined = (*call)["tool"].is_null()};
  }

 private:
  bool with_unanswerable_;
};

}  // namespace

std::unique_ptr<Task> make_tool_task(bool with_unanswerable) {
  return std::make_unique<ToolCalls>(with_unanswerable);
}

}  // namespace forebay::train
