#include "constrain/tool_grammar.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "constrain/pattern.h"
#include "constrain/schema_compiler.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

class ToolGrammar {
 public:
  ToolGrammar(ToolStyle style, const Tokenizer& tokenizer)
      : style_(style), tokenizer_(tokenizer), rules_(grammar_) {
    root_ = grammar_.rule(grammar_.add_rule());
  }

  Result<Grammar> build(const ToolSchemas& tools, const std::vector<std::string>& names, bool parallel) {
    const RuleId call = grammar_.add_rule();
    for (const std::string& name : names) add_function(call, name, tools.parameters(name));
    // Line ends may stand before the first call (behind thinking); one stands between calls.
    NodeId at = root_.start;
    const NodeId after = grammar_.add_node();
    for (int i = 0; i < 3; ++i) {
      grammar_.add_call(at, call, after);
      if (i == 2) break;
      const NodeId next = grammar_.add_node();
      grammar_.add_literal(at, "\n", next);
      at = next;
    }
    grammar_.add_empty(after, root_.end);
    if (parallel) {
      const NodeId between = grammar_.add_node();
      grammar_.add_literal(after, "\n", between);
      grammar_.add_call(between, call, after);
    }
    TRY(grammar_.finish());
    return std::move(grammar_);
  }

 private:
  /// A tag is a control token where the vocabulary has one.
  void add_tag(NodeId from, std::string_view tag, NodeId to) {
    if (const auto token = tokenizer_.find_special(tag))
      grammar_.add_special(from, *token, to);
    else
      grammar_.add_literal(from, tag, to);
  }

  NodeId then_literal(NodeId from, std::string_view text) {
    const NodeId next = grammar_.add_node();
    grammar_.add_literal(from, text, next);
    return next;
  }

  void add_function(RuleId call, const std::string& name, const Json& parameters) {
    const auto [start, end] = grammar_.rule(call);
    NodeId at = grammar_.add_node();
    add_tag(start, kToolOpen, at);
    if (style_ == ToolStyle::kXml) {
      at = then_literal(at, fmt::format("\n{}{}>\n", kFunctionOpen, name));
      at = add_parameters(at, parameters);
      at = then_literal(at, fmt::format("{}\n", kFunctionClose));
    } else {
      at = then_literal(at, fmt::format("\n{{\"name\": {}, \"arguments\": ", Json(name).dump()));
      const NodeId closing = grammar_.add_node();
      grammar_.add_call(at, arguments(parameters), closing);
      at = then_literal(closing, "}\n");
    }
    add_tag(at, kToolClose, end);
  }

  RuleId arguments(const Json& parameters) {
    if (parameters.empty()) return rules_.object();
    Json schema = parameters;
    if (!schema.contains("type")) schema["type"] = "object";
    SchemaCompiler compiler(rules_, schema);
    const Result<RuleId> rule = compiler.compile(schema, "#");
    return rule ? *rule : rules_.object();
  }

  NodeId add_parameters(NodeId at, const Json& parameters) {
    const auto properties = parameters.find("properties");
    if (properties == parameters.end() || !properties->is_object()) return at;
    std::set<std::string> required;
    if (const auto list = parameters.find("required"); list != parameters.end() && list->is_array())
      for (const Json& name : *list)
        if (name.is_string()) required.insert(name.get<std::string>());
    for (const auto& [name, schema] : properties->items()) {
      if (name.find_first_of(">\n") != std::string::npos) continue;  // no call can carry it
      const NodeId value = then_literal(at, fmt::format("{}{}>\n", kParameterOpen, name));
      const NodeId after = grammar_.add_node(), next = grammar_.add_node();
      grammar_.add_call(value, parameter(parameters, schema), after);
      grammar_.add_literal(after, fmt::format("\n{}\n", kParameterClose), next);
      if (!required.contains(name)) grammar_.add_empty(at, next);
      at = next;
    }
    return at;
  }

  /// A parameter's value as it stands in the call: a text where strings are allowed, else JSON.
  RuleId parameter(const Json& document, const Json& schema) {
    if (schema.is_object()) {
      const bool string = schema.value("type", Json()) == "string";
      if (const auto values = schema.find("enum"); string && values != schema.end() && values->is_array())
        return one_of(*values);
      if (const auto pattern = schema.find("pattern");
          string && pattern != schema.end() && pattern->is_string())
        if (const Result<RuleId> rule =
                add_pattern(grammar_, pattern->get<std::string>(), PatternText::kPlain))
          return *rule;
    }
    const Json tool = {{"name", "f"}, {"parameters", {{"properties", {{"p", schema}}}}}};
    Json with_definitions = tool;
    for (const char* key : {"$defs", "definitions"})
      if (const auto found = document.find(key); found != document.end())
        with_definitions["parameters"][key] = *found;
    const Result<ToolSchemas> typed = ToolSchemas::parse(Json::array({with_definitions}));
    const AllowedTypes types = typed ? typed->types_of("f", "p") : AllowedTypes{.any = true};
    if (types.string || types.any) return text();
    SchemaCompiler compiler(rules_, document);
    const Result<RuleId> rule = compiler.compile(schema, "#");
    return rule ? *rule : rules_.value();
  }

  RuleId one_of(const Json& values) {
    const RuleId rule = grammar_.add_rule();
    const auto [start, end] = grammar_.rule(rule);
    for (const Json& value : values)
      if (value.is_string()) grammar_.add_literal(start, value.get_ref<const std::string&>(), end);
    return rule;
  }

  /// Characters without </parameter> among them.
  RuleId text() {
    if (text_ >= 0) return text_;
    text_ = grammar_.add_rule();
    const auto [start, end] = grammar_.rule(text_);
    std::vector<NodeId> matched = {grammar_.add_node()};  // how much of the tag has been read
    for (size_t i = 1; i < kParameterClose.size(); ++i) matched.push_back(grammar_.add_node());
    grammar_.add_empty(start, matched[0]);
    for (size_t i = 0; i < matched.size(); ++i) {
      grammar_.add_empty(matched[i], end);
      grammar_.add_characters(matched[i], {{0x80, 0x10ffff}}, matched[0]);
      for (int c = '\t'; c < 0x7f; ++c) {
        if (c < ' ' && c != '\t' && c != '\n') continue;
        const auto byte = static_cast<uint8_t>(c);
        if (byte == static_cast<uint8_t>(kParameterClose[i])) {
          if (i + 1 < matched.size()) grammar_.add_range(matched[i], byte, byte, matched[i + 1]);
        } else {
          grammar_.add_range(matched[i], byte, byte, c == '<' ? matched[1] : matched[0]);
        }
      }
    }
    return text_;
  }

  const ToolStyle style_;
  const Tokenizer& tokenizer_;
  Grammar grammar_;
  JsonRules rules_;
  GrammarRule root_;
  RuleId text_ = -1;
};

}  // namespace

Result<Grammar> tool_call_grammar(ToolStyle style, const ToolSchemas& tools,
                                  const std::vector<std::string>& names, bool parallel,
                                  const Tokenizer& tokenizer) {
  if (style == ToolStyle::kNone)
    return Error{Code::kUnsupported,
                 "tool calls: this model's chat template has none in a style that is read here"};
  if (tools.empty()) return Error{Code::kInvalidArgument, "tool calls: no tools"};
  for (const std::string& name : names)
    if (!tools.has(name))
      return Error{Code::kInvalidArgument,
                   fmt::format("tool calls: no tool is named '{}'", name.substr(0, 60))};
  return ToolGrammar(style, tokenizer).build(tools, names.empty() ? tools.names() : names, parallel);
}

}  // namespace forebay
