#include "validator.h"

#include <cmath>
#include <regex>
#include <set>

#include "constrain/schema_compiler.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

bool is_type(const Json& value, const std::string& type) {
  if (type == "integer")
    return value.is_number() && std::isfinite(value.get<double>()) &&
           value.get<double>() == std::floor(value.get<double>());
  if (type == "number") return value.is_number();
  return value.type_name() == type;
}

/// Object members in any order are one value.
bool same(const Json& a, const Json& b) {
  return nlohmann::json::parse(a.dump()) == nlohmann::json::parse(b.dump());
}

int64_t n_code_points(const std::string& text) {
  int64_t n = 0;
  for (const char c : text) n += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return n;
}

class Validator {
 public:
  explicit Validator(const Json& document) : document_(document) {}

  std::string check(const Json& schema, const Json& value) {
    if (schema.is_boolean()) return schema == true ? "" : "false";
    for (const auto& [keyword, wanted] : schema.items())
      if (!holds(schema, keyword, wanted, value))
        return keyword + " of " + schema.dump() + " at " + value.dump();
    return deeper_;
  }

 private:
  bool valid(const Json& schema, const Json& value) {
    const std::string saved = deeper_;
    deeper_.clear();
    const bool ok = check(schema, value).empty();
    deeper_ = saved;
    return ok;
  }

  bool all_valid(const Json& schema, const Json& value) {
    const std::string found = check(schema, value);
    if (!found.empty() && deeper_.empty()) deeper_ = found;
    return found.empty();
  }

  bool holds(const Json& schema, const std::string& keyword, const Json& wanted, const Json& value) {
    if (keyword == "$ref") return all_valid(*find_reference(document_, wanted), value);
    if (keyword == "type") {
      if (wanted.is_string()) return is_type(value, wanted);
      return std::any_of(wanted.begin(), wanted.end(), [&](const Json& t) { return is_type(value, t); });
    }
    if (keyword == "const") return same(wanted, value);
    if (keyword == "enum")
      return std::any_of(wanted.begin(), wanted.end(), [&](const Json& v) { return same(v, value); });
    if (keyword == "anyOf" || keyword == "oneOf" || keyword == "allOf") {
      const auto n =
          std::count_if(wanted.begin(), wanted.end(), [&](const Json& s) { return valid(s, value); });
      return keyword == "anyOf"   ? n > 0
             : keyword == "oneOf" ? n == 1
                                  : n == static_cast<int64_t>(wanted.size());
    }
    if (value.is_number()) return number_holds(keyword, wanted, value);
    if (value.is_string()) return string_holds(keyword, wanted, value);
    if (value.is_array()) return array_holds(schema, keyword, wanted, value);
    if (value.is_object()) return object_holds(schema, keyword, wanted, value);
    return true;
  }

  static bool number_holds(const std::string& keyword, const Json& wanted, const Json& value) {
    const auto number = [](const Json& json) { return json.get<double>(); };
    if (keyword == "minimum") return number(value) >= number(wanted);
    if (keyword == "maximum") return number(value) <= number(wanted);
    if (keyword == "exclusiveMinimum") return number(value) > number(wanted);
    if (keyword == "exclusiveMaximum") return number(value) < number(wanted);
    return true;
  }

  static bool string_holds(const std::string& keyword, const Json& wanted, const Json& value) {
    const std::string& text = value.get_ref<const std::string&>();
    if (keyword == "minLength") return n_code_points(text) >= wanted.get<int64_t>();
    if (keyword == "maxLength") return n_code_points(text) <= wanted.get<int64_t>();
    if (keyword == "pattern" && text.size() < 200 &&
        std::all_of(text.begin(), text.end(), [](char c) { return c > 0; }))
      return std::regex_search(text, std::regex(wanted.get<std::string>(), std::regex::ECMAScript));
    return true;
  }

  bool array_holds(const Json& schema, const std::string& keyword, const Json& wanted, const Json& value) {
    const size_t n_prefix = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
    if (keyword == "minItems") return static_cast<int64_t>(value.size()) >= wanted.get<int64_t>();
    if (keyword == "maxItems") return static_cast<int64_t>(value.size()) <= wanted.get<int64_t>();
    if (keyword == "items")
      for (size_t i = n_prefix; i < value.size(); ++i)
        if (!all_valid(wanted, value[i])) return false;
    if (keyword == "prefixItems")
      for (size_t i = 0; i < std::min(n_prefix, value.size()); ++i)
        if (!all_valid(wanted[i], value[i])) return false;
    return true;
  }

  bool object_holds(const Json& schema, const std::string& keyword, const Json& wanted, const Json& value) {
    const auto is_named = [&](const std::string& name) {
      return schema.contains("properties") && schema["properties"].contains(name);
    };
    if (keyword == "required")
      return std::all_of(wanted.begin(), wanted.end(),
                         [&](const Json& name) { return value.contains(name); });
    if (keyword == "properties")
      for (const auto& [name, inner] : wanted.items())
        if (value.contains(name) && !all_valid(inner, value[name])) return false;
    if (keyword == "additionalProperties")
      for (const auto& [name, member] : value.items())
        if (!is_named(name) && !all_valid(wanted, member)) return false;
    return true;
  }

  const Json& document_;
  std::string deeper_;
};

}  // namespace

std::string find_violation(const Json& schema, const Json& value) {
  return Validator(schema).check(schema, value);
}

}  // namespace forebay
