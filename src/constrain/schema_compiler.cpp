#include "constrain/schema_compiler.h"

#include <algorithm>

#include <fmt/format.h>

#include "constrain/number_range.h"
#include "constrain/pattern.h"
#include "constrain/schema_keywords.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxSchemaDepth = 128;
constexpr size_t kMaxOneOf = 64;  // each is compared with each

}  // namespace

const Json* find_reference(const Json& document, const std::string& reference) {
  if (!reference.starts_with("#")) return nullptr;
  try {
    const Json::json_pointer pointer(reference.substr(1));
    return document.contains(pointer) ? &document.at(pointer) : nullptr;
  } catch (const Json::exception&) {
    return nullptr;
  }
}

RuleId SchemaCompiler::any_of(const std::vector<RuleId>& rules) {
  if (rules.size() == 1) return rules[0];
  const RuleId rule = rules_.grammar().add_rule();
  const auto [start, end] = rules_.grammar().rule(rule);
  for (const RuleId one : rules) rules_.grammar().add_call(start, one, end);
  return rule;
}

Result<RuleId> SchemaCompiler::compile(const Json& schema, const std::string& path) {
  if (schema.is_boolean()) return schema == true ? rules_.value() : rules_.grammar().add_rule();
  if (!schema.is_object()) return wrong(path, fmt::format("{}, expected an object", schema.type_name()));
  if (rules_.grammar().too_large()) return wrong("#", fmt::format("more than {} states", Grammar::kMaxNodes));
  if (depth_ >= kMaxSchemaDepth)
    return unsupported(path.substr(0, 80), fmt::format("deeper than {}", kMaxSchemaDepth));
  ++depth_;
  Result<RuleId> rule = compile_object_schema(schema, path);
  --depth_;
  return rule;
}

Result<RuleId> SchemaCompiler::compile_object_schema(const Json& schema, const std::string& path) {
  TRY(check_keywords(schema, path));
  std::vector<std::string> assertions;
  for (const auto& [keyword, value] : schema.items())
    if (is_assertion(keyword)) assertions.push_back(keyword);
  const auto alone = [&](const std::string& keyword) -> Result<void> {
    for (const std::string& other : assertions)
      if (other != keyword)
        return unsupported(path, fmt::format("'{}' beside '{}' is not supported", other, keyword));
    return {};
  };
  if (assertions.empty()) return rules_.value();
  if (schema.contains("$ref")) {
    TRY(alone("$ref"));
    return compile_reference(schema, path);
  }
  if (const auto all = schema.find("allOf"); all != schema.end()) {
    TRY(alone("allOf"));
    if (!all->is_array() || all->empty()) return wrong(path, "allOf: expected a list");
    if (all->size() > 1) return unsupported(path, "'allOf' of more than one schema is not supported");
    return compile((*all)[0], path + "/allOf/0");
  }
  for (const char* keyword : {"anyOf", "oneOf"})
    if (schema.contains(keyword)) {
      TRY(alone(keyword));
      return compile_choice(schema, keyword, path);
    }
  if (schema.contains("enum") || schema.contains("const")) return compile_values(schema, path);
  std::vector<RuleId> rules;
  for (const std::string& type : types_of(schema)) {
    const RuleId rule = TRY(compile_type(schema, type, path));
    rules.push_back(rule);
  }
  return any_of(rules);
}

Result<RuleId> SchemaCompiler::compile_reference(const Json& schema, const std::string& path) {
  const Json& name = schema["$ref"];
  if (!name.is_string()) return wrong(path, "$ref: expected a text");
  const std::string& reference = name.get_ref<const std::string&>();
  if (const auto known = references_.find(reference); known != references_.end()) return known->second;
  const Json* target = find_reference(document_, reference);
  if (!target)
    return wrong(path, fmt::format("$ref: nothing at '{}' in this document", reference.substr(0, 80)));
  const RuleId rule = rules_.grammar().add_rule();
  references_[reference] = rule;
  const RuleId compiled = TRY(compile(*target, reference));
  const auto [start, end] = rules_.grammar().rule(rule);
  rules_.grammar().add_call(start, compiled, end);
  return rule;
}

Result<RuleId> SchemaCompiler::compile_choice(const Json& schema, const char* keyword,
                                              const std::string& path) {
  const Json& choices = schema[keyword];
  if (!choices.is_array() || choices.empty()) return wrong(path, fmt::format("{}: expected a list", keyword));
  const bool exactly_one = std::string_view(keyword) == "oneOf";
  if (exactly_one && choices.size() > kMaxOneOf)
    return unsupported(path, fmt::format("oneOf of more than {} schemas", kMaxOneOf));
  std::vector<RuleId> rules;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (exactly_one)
      for (size_t j = 0; j < i; ++j)
        if (!are_disjoint(document_, choices[j], choices[i]))
          return unsupported(
              path, fmt::format("oneOf: {} and {} may both fit; use anyOf, or a type or constant member "
                                "that tells them apart",
                                j, i));
    const RuleId rule = TRY(compile(choices[i], fmt::format("{}/{}/{}", path, keyword, i)));
    rules.push_back(rule);
  }
  return any_of(rules);
}

Result<RuleId> SchemaCompiler::compile_values(const Json& schema, const std::string& path) {
  for (const auto& [keyword, value] : schema.items())
    if (is_assertion(keyword) && keyword != "enum" && keyword != "const" && keyword != "type")
      return unsupported(path, fmt::format("'{}' beside '{}' is not supported", keyword,
                                           schema.contains("enum") ? "enum" : "const"));
  std::vector<Json> values;
  if (const auto list = schema.find("enum"); list != schema.end()) {
    if (!list->is_array() || list->empty()) return wrong(path, "enum: expected a list of values");
    values.assign(list->begin(), list->end());
  }
  if (const auto constant = schema.find("const"); constant != schema.end()) {
    if (schema.contains("enum"))
      std::erase_if(values, [&](const Json& v) { return v != *constant; });
    else
      values = {*constant};
  }
  if (schema.contains("type")) {
    const std::vector<std::string> types = types_of(schema);
    std::erase_if(values, [&](const Json& v) {
      return std::none_of(types.begin(), types.end(), [&](const std::string& t) { return fits_type(v, t); });
    });
  }
  const RuleId rule = rules_.grammar().add_rule();  // reads nothing when no value is left
  const auto [start, end] = rules_.grammar().rule(rule);
  for (const Json& value : values) rules_.grammar().add_call(start, rules_.literal(value), end);
  return rule;
}

Result<RuleId> SchemaCompiler::compile_type(const Json& schema, const std::string& type,
                                            const std::string& path) {
  if (type == "null") return rules_.literal(nullptr);
  if (type == "boolean") {
    const RuleId yes = rules_.literal(true), no = rules_.literal(false);
    return any_of({yes, no});
  }
  if (type == "integer" || type == "number") return compile_number(schema, type == "integer", path);
  if (type == "string") return compile_string(schema, path);
  if (type == "array") return compile_array(schema, path);
  return compile_object(schema, path);
}

Result<RuleId> SchemaCompiler::compile_number(const Json& schema, bool integer, const std::string& path) {
  NumberBounds bounds;
  const auto take = [&](const char* keyword, std::optional<Json>& bound, bool& excluded, bool low,
                        bool excludes) -> Result<void> {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return {};
    if (!found->is_number()) return wrong(path, fmt::format("{}: expected a number", keyword));
    const bool tighter =
        !bound || (low ? *found > *bound : *found < *bound) || (*found == *bound && excludes);
    if (tighter) {
      bound = *found;
      excluded = excludes;
    }
    return {};
  };
  TRY(take("minimum", bounds.min, bounds.min_excluded, true, false));
  TRY(take("exclusiveMinimum", bounds.min, bounds.min_excluded, true, true));
  TRY(take("maximum", bounds.max, bounds.max_excluded, false, false));
  TRY(take("exclusiveMaximum", bounds.max, bounds.max_excluded, false, true));
  if (bounds.empty()) return integer ? rules_.integer() : rules_.number();
  Result<RuleId> rule = add_number_range(rules_.grammar(), bounds, integer);
  if (!rule) return std::move(rule).error().in("schema " + path);
  return rule;
}

Result<RuleId> SchemaCompiler::compile_string(const Json& schema, const std::string& path) {
  const std::optional<int64_t> min = TRY(count_at(schema, "minLength", path));
  const std::optional<int64_t> max = TRY(count_at(schema, "maxLength", path));
  const auto pattern = schema.find("pattern"), format = schema.find("format");
  if (pattern == schema.end() && format == schema.end())
    return min || max ? rules_.string_of_length(min.value_or(0), max) : rules_.string();

  const char* keyword = pattern != schema.end() ? "pattern" : "format";
  if (pattern != schema.end() && format != schema.end())
    return unsupported(path, "'format' beside 'pattern' is not supported");
  if (min.value_or(0) > 0 || max)
    return unsupported(path, fmt::format("lengths beside '{}' are not supported", keyword));
  if (!schema[keyword].is_string()) return wrong(path, fmt::format("{}: expected a text", keyword));
  std::string text = schema[keyword].get<std::string>();
  if (format != schema.end()) {
    const char* const known = pattern_of_format(text);
    if (known == nullptr)
      return unsupported(path, fmt::format("format '{}' is not supported", text.substr(0, 60)));
    text = known;
  }
  Result<RuleId> inside = add_pattern(rules_.grammar(), text, PatternText::kJsonString);
  if (!inside) return std::move(inside).error().in(fmt::format("schema {}: {}", path, keyword));
  Grammar& grammar = rules_.grammar();
  const RuleId rule = grammar.add_rule();
  const auto [start, end] = grammar.rule(rule);
  const NodeId open = grammar.add_node(), closing = grammar.add_node();
  grammar.add_literal(start, "\"", open);
  grammar.add_call(open, *inside, closing);
  grammar.add_literal(closing, "\"", end);
  return rule;
}

Result<RuleId> SchemaCompiler::compile_array(const Json& schema, const std::string& path) {
  const int64_t min = TRY(count_at(schema, "minItems", path)).value_or(0);
  const std::optional<int64_t> max = TRY(count_at(schema, "maxItems", path));
  std::vector<RuleId> first;
  if (const auto prefix = schema.find("prefixItems"); prefix != schema.end()) {
    if (!prefix->is_array()) return wrong(path, "prefixItems: expected a list");
    for (size_t i = 0; i < prefix->size(); ++i) {
      const RuleId rule = TRY(compile((*prefix)[i], fmt::format("{}/prefixItems/{}", path, i)));
      first.push_back(rule);
    }
  }
  RuleId rest = -1;
  if (const auto items = schema.find("items"); items != schema.end()) {
    if (items->is_array()) return unsupported(path, "'items' as a list is not supported; use 'prefixItems'");
    if (*items != false) rest = TRY(compile(*items, path + "/items"));
  } else if (first.empty() || min > static_cast<int64_t>(first.size())) {
    rest = rules_.value();
  }
  return rules_.array_of(first, rest, min, max);
}

Result<RuleId> SchemaCompiler::compile_object(const Json& schema, const std::string& path) {
  std::set<std::string> required;
  if (const auto list = schema.find("required"); list != schema.end()) {
    if (!list->is_array()) return wrong(path, "required: expected a list of names");
    for (const Json& name : *list) {
      if (!name.is_string()) return wrong(path, "required: expected a list of names");
      required.insert(name.get<std::string>());
    }
  }
  const auto properties = schema.find("properties");
  if (properties != schema.end() && !properties->is_object())
    return wrong(path, "properties: expected an object");
  const auto additional = schema.find("additionalProperties");
  const bool has_properties = properties != schema.end() && !properties->empty();
  // Where the schema does not say, members that it does not name are left out, unless it names none.
  const bool others = additional != schema.end() ? *additional != false : !has_properties && required.empty();
  RuleId other = -1;
  if (others || (additional == schema.end() && !required.empty()))
    other = additional != schema.end() ? TRY(compile(*additional, path + "/additionalProperties"))
                                       : rules_.value();

  std::vector<JsonRules::Member> members;
  std::vector<std::string> names;
  if (properties != schema.end())
    for (const auto& [name, inner] : properties->items()) {
      const RuleId value = TRY(compile(inner, fmt::format("{}/properties/{}", path, name.substr(0, 60))));
      members.push_back({rules_.pair(rules_.literal(name), value), required.contains(name)});
      names.push_back(name);
      required.erase(name);
    }
  for (const std::string& name : required) {
    // Required, and described only as one of the others.
    const RuleId value = other >= 0 ? other : rules_.grammar().add_rule();
    members.push_back({rules_.pair(rules_.literal(name), value), true});
    names.push_back(name);
  }
  const RuleId more = others ? rules_.pair(rules_.other_name(names), other) : -1;
  return rules_.object_of(members, more);
}

namespace {

/// The root: two line ends may stand before the value (models write them behind their thinking).
void add_root(Grammar& grammar, NodeId start, NodeId end, RuleId value) {
  NodeId at = start;
  for (int i = 0; i < 3; ++i) {
    grammar.add_call(at, value, end);
    if (i == 2) break;
    const NodeId next = grammar.add_node();
    grammar.add_literal(at, "\n", next);
    at = next;
  }
}

}  // namespace

Result<Grammar> compile_schema(const Json& schema) {
  Grammar grammar;
  const GrammarRule root = grammar.rule(grammar.add_rule());
  JsonRules rules(grammar);
  SchemaCompiler compiler(rules, schema);
  const RuleId value = TRY(compiler.compile(schema, "#"));
  add_root(grammar, root.start, root.end, value);
  if (Result<void> finished = grammar.finish(); !finished) return std::move(finished).error().in("schema");
  return grammar;
}

Grammar json_object_grammar() {
  Grammar grammar;
  const GrammarRule root = grammar.rule(grammar.add_rule());
  JsonRules rules(grammar);
  add_root(grammar, root.start, root.end, rules.object());
  grammar.finish().value();
  return grammar;
}

}  // namespace forebay
