#include "chat/tool_schemas.h"

#include <fmt/format.h>

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxRefs = 16;  // a chain of references longer than this is a loop

void allow(AllowedTypes& types, std::string_view name) {
  if (name == "string")
    types.string = true;
  else if (name == "null")
    types.null = true;
  else if (name == "number")
    types.number = true;
  else if (name == "integer")
    types.integer = true;
  else if (name == "boolean")
    types.boolean = true;
  else if (name == "object")
    types.object = true;
  else if (name == "array")
    types.array = true;
  else
    types.any = true;
}

void allow_value(AllowedTypes& types, const Json& value) {
  if (value.is_string())
    types.string = true;
  else if (value.is_null())
    types.null = true;
  else if (value.is_number_integer())
    types.integer = true;
  else if (value.is_number())
    types.number = true;
  else if (value.is_boolean())
    types.boolean = true;
  else if (value.is_object())
    types.object = true;
  else
    types.array = true;
}

const Json* resolve(const Json& root, const std::string& ref) {
  if (!ref.starts_with("#")) return nullptr;
  try {
    const Json::json_pointer pointer(ref.substr(1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const Json::exception&) {
    return nullptr;
  }
}

void collect(const Json& root, const Json& schema, AllowedTypes& types, int depth) {
  if (!schema.is_object() || depth > kMaxRefs) {
    types.any = true;
    return;
  }
  if (const auto ref = schema.find("$ref"); ref != schema.end() && ref->is_string()) {
    const Json* target = resolve(root, ref->get<std::string>());
    if (target) return collect(root, *target, types, depth + 1);
  }
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_string()) return allow(types, type->get<std::string>());
    if (type->is_array()) {
      for (const Json& one : *type) allow(types, one.is_string() ? one.get<std::string>() : "");
      return;
    }
  }
  if (const auto value = schema.find("const"); value != schema.end()) return allow_value(types, *value);
  if (const auto values = schema.find("enum");
      values != schema.end() && values->is_array() && !values->empty()) {
    for (const Json& value : *values) allow_value(types, value);
    return;
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    const auto choices = schema.find(keyword);
    if (choices == schema.end() || !choices->is_array() || choices->empty()) continue;
    for (const Json& choice : *choices) collect(root, choice, types, depth + 1);
    return;
  }
  types.any = true;
}

}  // namespace

Result<ToolSchemas> ToolSchemas::parse(const Json& tools) {
  ToolSchemas schemas;
  if (tools.is_null()) return schemas;
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (!tools.is_array()) return refuse(fmt::format("tools: {}, expected a list", tools.type_name()));
  for (size_t i = 0; i < tools.size(); ++i) {
    std::string where = fmt::format("tools[{}]", i);
    const Json* tool = &tools[i];
    if (!tool->is_object())
      return refuse(fmt::format("{}: {}, expected an object", where, tool->type_name()));
    if (const auto inner = tool->find("function"); inner != tool->end()) {
      where += ".function";
      tool = &*inner;
      if (!tool->is_object())
        return refuse(fmt::format("{}: {}, expected an object", where, tool->type_name()));
    }
    const auto name = tool->find("name");
    if (name == tool->end() || !name->is_string() || name->get_ref<const std::string&>().empty())
      return refuse(fmt::format("{}.name: expected a text", where));
    const std::string& text = name->get_ref<const std::string&>();
    if (text.find_first_of("<>\n\"") != std::string::npos)
      return refuse(fmt::format("{}.name: '{}' has a character that no call can carry", where, text));
    Json parameters = Json::object();
    for (const char* key : {"parameters", "input_schema"})
      if (const auto found = tool->find(key); found != tool->end() && !found->is_null()) {
        if (!found->is_object())
          return refuse(fmt::format("{}.{}: {}, expected an object", where, key, found->type_name()));
        parameters = *found;
      }
    if (!schemas.tools_.emplace(text, std::move(parameters)).second)
      return refuse(fmt::format("{}.name: '{}' is there twice", where, text));
    schemas.names_.push_back(text);
  }
  return schemas;
}

AllowedTypes ToolSchemas::types_of(std::string_view function, std::string_view parameter) const {
  AllowedTypes types;
  const auto tool = tools_.find(function);
  if (tool != tools_.end()) {
    const Json& schema = tool->second;
    const auto properties = schema.find("properties");
    if (properties != schema.end() && properties->is_object()) {
      const auto found = properties->find(std::string(parameter));
      if (found != properties->end()) {
        collect(schema, *found, types, 0);
        return types;
      }
    }
  }
  types.any = true;
  return types;
}

}  // namespace forebay
