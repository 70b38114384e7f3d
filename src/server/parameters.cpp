#include "server/parameters.h"

#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "chat/reasoning_budget.h"
#include "core/parse.h"
#include "sampling/sampling.h"

namespace forebay {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 24;
constexpr size_t kMostStops = 16;

template <typename T, typename U>
void set(T& target, const std::optional<U>& value) {
  if (value) target = static_cast<T>(*value);
}

Result<void> parse_sampling(const Fields& body, SamplingOptions& s) {
  const double most = std::numeric_limits<float>::max();
  set(s.temperature, TRY(body.number("temperature", 0, 100)));
  set(s.top_p, TRY(body.number("top_p", 0, 1)));
  set(s.top_k, TRY(body.integer("top_k", 0, kMostTokens)));
  set(s.min_p, TRY(body.number("min_p", 0, 1)));
  set(s.typical_p, TRY(body.number("typical_p", 1e-6, 1)));
  set(s.presence_penalty, TRY(body.number("presence_penalty", -2, 2)));
  set(s.frequency_penalty, TRY(body.number("frequency_penalty", -2, 2)));
  set(s.repeat_penalty, TRY(body.number("repeat_penalty", 0.01, 100)));
  set(s.penalty_last_n, TRY(body.integer("penalty_last_n", -1, kMostTokens)));
  set(s.dry_multiplier, TRY(body.number("dry_multiplier", 0, most)));
  set(s.dry_base, TRY(body.number("dry_base", 1, 100)));
  set(s.dry_allowed_length, TRY(body.integer("dry_allowed_length", 1, 1 << 20)));
  // Any 64 bits are a seed; OpenAI's may be negative.
  const std::optional<int64_t> seed =
      TRY(body.integer("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()));
  s.seed = seed ? static_cast<uint64_t>(*seed) : std::random_device()();
  return {};
}

Result<void> parse_logit_bias(const Fields& body, int n_vocab, SamplingOptions& s) {
  const Json* biases = TRY(body.object("logit_bias"));
  if (biases == nullptr) return {};
  const std::string path = body.path_of("logit_bias");
  for (const auto& [key, value] : biases->items()) {
    const Result<int64_t> id = parse_int(key, 0, n_vocab - 1);
    if (!id)
      return body.refuse("logit_bias", fmt::format("'{}' is no token id from 0 to {}", key, n_vocab - 1));
    const std::optional<double> bias = TRY(Fields(*biases, path).number(key, -100, 100));
    if (bias) s.logit_bias.emplace_back(static_cast<int32_t>(*id), static_cast<float>(*bias));
  }
  return {};
}

Result<std::vector<std::string>> parse_stop(const Fields& body, std::string_view name) {
  std::vector<std::string> stops;
  const Json* value = body.find(name);
  if (value == nullptr) return stops;
  const auto wrong = [&] { return body.wrong(name, "a string or a list of strings, none of them empty"); };
  if (value->is_string()) {
    stops.push_back(value->get<std::string>());
  } else if (value->is_array()) {
    for (const Json& one : *value) {
      if (!one.is_string()) return wrong();
      stops.push_back(one.get<std::string>());
    }
  } else {
    return wrong();
  }
  if (stops.size() > kMostStops)
    return body.refuse(name, fmt::format("{} strings, expected at most {}", stops.size(), kMostStops));
  for (const std::string& stop : stops)
    if (stop.empty()) return wrong();
  return stops;
}

Result<void> parse_limit(const Fields& body, Protocol protocol, GenerateOptions& g) {
  if (protocol == Protocol::kMessages) {
    const std::optional<int64_t> most = TRY(body.integer("max_tokens", 1, kMostTokens));
    if (!most) return body.wrong("max_tokens", fmt::format("an integer from 1 to {}", kMostTokens));
    g.max_tokens = *most;
    return {};
  }
  for (const char* name : {"max_tokens", "max_completion_tokens", "max_output_tokens"})
    set(g.max_tokens, TRY(body.integer(name, 0, kMostTokens)));
  return {};
}

Result<void> parse_log_probs(const Fields& body, Protocol protocol, AnswerOptions& o) {
  if (protocol == Protocol::kCompletions) {
    const std::optional<int64_t> n = TRY(body.integer("logprobs", 0, 20));
    o.log_probs = n.has_value();
    set(o.generate.top_log_probs, n);
    return {};
  }
  if (protocol == Protocol::kChat) set(o.log_probs, TRY(body.boolean("logprobs")));
  const std::optional<int64_t> top = TRY(body.integer("top_logprobs", 0, 20));
  if (top && *top > 0 && protocol == Protocol::kChat && !o.log_probs)
    return body.refuse("top_logprobs", "needs logprobs: true");
  set(o.generate.top_log_probs, top);
  if (protocol == Protocol::kResponses && top) o.log_probs = *top > 0;
  return {};
}

Result<void> parse_thinking(const Fields& body, Protocol protocol, AnswerOptions& o) {
  // What lies above "high" elsewhere is without limit here, as "high" is.
  constexpr std::string_view kEfforts = "none|minimal|low|medium|high|xhigh|max";
  ReasoningRequest asked;
  const auto take_effort = [&](const std::optional<std::string>& name) -> Result<void> {
    if (name) asked.effort = TRY(parse_reasoning_effort(*name == "xhigh" || *name == "max" ? "high" : *name));
    return {};
  };
  TRY(take_effort(TRY(body.choice("reasoning_effort", kEfforts))));
  if (const Json* reasoning = TRY(body.object("reasoning"))) {
    const Fields fields(*reasoning, body.path_of("reasoning"));
    TRY(take_effort(TRY(fields.choice("effort", kEfforts))));
    if (const auto n = TRY(fields.integer("max_tokens", 0, kMostTokens))) asked.budget_tokens = n;
  }
  if (const Json* values = TRY(body.object("chat_template_kwargs"))) {
    const Fields fields(*values, body.path_of("chat_template_kwargs"));
    if (const auto on = TRY(fields.boolean("enable_thinking"))) asked.on = on;
  }
  if (const auto on = TRY(body.boolean("enable_thinking"))) asked.on = on;
  if (const auto n = TRY(body.integer("thinking_budget", 0, kMostTokens))) asked.budget_tokens = n;
  if (protocol == Protocol::kMessages) {
    asked.on = false;  // this protocol's default
    if (const Json* thinking = TRY(body.object("thinking"))) {
      const Fields fields(*thinking, "thinking");
      const std::optional<std::string> type = TRY(fields.choice("type", "enabled|disabled|adaptive"));
      if (!type) return fields.wrong("type", "one of enabled, disabled, adaptive");
      asked.on = *type != "disabled";
      asked.budget_tokens = TRY(fields.integer("budget_tokens", 1, kMostTokens));
      if (*type == "enabled" && !asked.budget_tokens)
        return fields.wrong("budget_tokens", "an integer of at least 1");
    }
  }
  const ReasoningPlan plan = plan_reasoning(asked);
  o.thinking = plan.enable_thinking;
  o.thinking_budget = plan.budget_tokens;
  return {};
}

Result<void> parse_format(const Fields& body, AnswerOptions& o) {
  const Json* format = TRY(body.object("response_format"));
  std::string path = body.path_of("response_format");
  if (format == nullptr) {
    // The responses API has it elsewhere.
    const Json* text = TRY(body.object("text"));
    if (text == nullptr) return {};
    format = TRY(Fields(*text, body.path_of("text")).object("format"));
    path = body.path_of("text.format");
    if (format == nullptr) return {};
  }
  const Fields fields(*format, path);
  const std::optional<std::string> type = TRY(fields.choice("type", "text|json_object|json_schema"));
  if (!type) return fields.wrong("type", "one of text, json_object, json_schema");
  if (*type == "json_object") o.schema = Json{{"type", "object"}};
  if (*type != "json_schema") return {};
  const Json* wrapped = TRY(fields.object("json_schema"));
  const Fields inner = wrapped != nullptr ? Fields(*wrapped, fields.path_of("json_schema")) : fields;
  const Json* schema = TRY(inner.object("schema"));
  if (schema == nullptr) return inner.wrong("schema", "an object");
  o.schema = *schema;
  return {};
}

}  // namespace

Result<AnswerOptions> parse_answer_options(const Fields& body, Protocol protocol, const ModelInfo& model) {
  AnswerOptions o;
  o.generate.sampling = model.sampling;
  o.generate.specials = true;  // some vocabularies count <think> and its like among the control tokens
  TRY(parse_sampling(body, o.generate.sampling));
  TRY(parse_logit_bias(body, model.n_vocab, o.generate.sampling));
  if (const Result<void> valid = validate(o.generate.sampling, model.n_vocab); !valid) return valid.error();
  o.stop = TRY(parse_stop(body, protocol == Protocol::kMessages ? "stop_sequences" : "stop"));
  TRY(parse_limit(body, protocol, o.generate));
  TRY(parse_log_probs(body, protocol, o));
  TRY(parse_thinking(body, protocol, o));
  TRY(parse_format(body, o));
  set(o.n, TRY(body.integer("n", 1, 16)));
  if (const auto best = TRY(body.integer("best_of", 1, 1 << 20)); best && *best != o.n)
    return body.refuse("best_of", fmt::format("{}, only the value of n ({}) is possible", *best, o.n));
  set(o.stream, TRY(body.boolean("stream")));
  if (const Json* stream = TRY(body.object("stream_options"))) {
    set(o.include_usage, TRY(Fields(*stream, "stream_options").boolean("include_usage")));
    if (!o.stream) return body.refuse("stream_options", "needs stream: true");
  }
  set(o.client, TRY(body.string("user")));
  for (const char* name : {"audio", "functions", "function_call", "prediction", "web_search_options"})
    if (body.has(name)) return body.refuse(name, "is not supported");
  if (const Json* modalities = TRY(body.list("modalities")))
    for (const Json& modality : *modalities)
      if (modality != "text")
        return body.refuse("modalities", "got " + describe(modality) + ", only text is possible");
  TRY(body.string("model"));
  TRY(body.object("metadata"));
  return o;
}

Result<Json> parse_tools(const Fields& body) {
  const Json* tools = TRY(body.list("tools"));
  if (tools == nullptr || tools->empty()) return Json();
  for (size_t i = 0; i < tools->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", body.path_of("tools"), i);
    const Json& tool = (*tools)[i];
    if (!tool.is_object())
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: got {}, expected an object", path, describe(tool))};
    const Fields fields(tool, path);
    if (const auto type = TRY(fields.string("type")); type != "function")
      return fields.wrong("type", "\"function\"");
    const Json* function = TRY(fields.object("function"));
    if (function == nullptr) return fields.wrong("function", "an object");
    const Fields inner(*function, path + ".function");
    if (TRY(inner.required_string("name")).empty()) return inner.wrong("name", "a name");
    TRY(inner.string("description"));
    TRY(inner.object("parameters"));
  }
  return *tools;
}

Result<void> check_tool_choice(const ToolChoice& choice, const Json& tools, std::string_view field) {
  const auto refuse = [&](std::string why) {
    return Error{Code::kInvalidArgument, fmt::format("{}: {}", field, why)};
  };
  if (choice.kind == ToolChoice::Kind::kAuto || choice.kind == ToolChoice::Kind::kNone) return {};
  if (!tools.is_array()) return refuse("needs tools");
  if (choice.kind == ToolChoice::Kind::kRequired) return {};
  for (const Json& tool : tools)
    if (tool["function"]["name"] == choice.name) return {};
  return refuse(fmt::format("'{}' is none of the tools", choice.name));
}

Result<ToolChoice> parse_tool_choice(const Fields& body, const Json& tools) {
  ToolChoice choice;
  const Json* value = body.find("tool_choice");
  if (value == nullptr) return choice;
  if (value->is_object()) {
    const Fields fields(*value, body.path_of("tool_choice"));
    const Json* function = TRY(fields.object("function"));
    const Fields inner = function != nullptr ? Fields(*function, fields.path_of("function")) : fields;
    choice = {ToolChoice::Kind::kNamed, TRY(inner.required_string("name"))};
  } else {
    const std::string word = TRY(body.choice("tool_choice", "auto|none|required")).value_or("auto");
    if (word == "none") choice.kind = ToolChoice::Kind::kNone;
    if (word == "required") choice.kind = ToolChoice::Kind::kRequired;
  }
  TRY(check_tool_choice(choice, tools, body.path_of("tool_choice")));
  return choice;
}

}  // namespace forebay
