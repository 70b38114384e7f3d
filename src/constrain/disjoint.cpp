// Whether two schemas can be told apart: "oneOf" asks that exactly one fits.
#include <algorithm>

#include "constrain/schema_compiler.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxRefs = 16;
/// Comparisons of schemas for one answer: schemas may contain themselves, and each other's members many
/// times.
constexpr int kMaxComparisons = 2000;

bool disjoint(const Json& document, const Json& first, const Json& second, int& n_left);

const Json& resolved(const Json& document, const Json& schema) {
  const Json* at = &schema;
  for (int i = 0; i < kMaxRefs && at->is_object(); ++i) {
    if (const auto all = at->find("allOf"); all != at->end() && all->is_array() && all->size() == 1) {
      at = &(*all)[0];
      continue;
    }
    const auto reference = at->find("$ref");
    if (reference == at->end() || !reference->is_string()) break;
    const Json* target = find_reference(document, reference->get<std::string>());
    if (!target) break;
    at = target;
  }
  return *at;
}

/// Empty: any value.
std::vector<Json> values_of(const Json& schema) {
  if (const auto constant = schema.find("const"); constant != schema.end()) return {*constant};
  if (const auto list = schema.find("enum"); list != schema.end() && list->is_array())
    return {list->begin(), list->end()};
  return {};
}

std::vector<std::string> possible_types(const Json& schema) {
  const auto type = schema.find("type");
  std::vector<std::string> types;
  if (type != schema.end() && type->is_string()) types.push_back(type->get<std::string>());
  if (type != schema.end() && type->is_array())
    for (const Json& one : *type)
      if (one.is_string()) types.push_back(one.get<std::string>());
  if (types.empty())
    for (const Json& value : values_of(schema))
      types.push_back(value.is_number_float() ? "number" : value.type_name());
  // An integer is a number, and the types' names of constants know no integers.
  for (std::string& name : types)
    if (name == "integer") name = "number";
  return types;
}

template <typename T>
bool share(const std::vector<T>& a, const std::vector<T>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const T& x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

bool requires_member(const Json& schema, const std::string& name) {
  const auto required = schema.find("required");
  return required != schema.end() && required->is_array() &&
         std::find(required->begin(), required->end(), Json(name)) != required->end();
}

const Json* member(const Json& schema, const std::string& name) {
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return nullptr;
  const auto found = properties->find(name);
  return found == properties->end() ? nullptr : &*found;
}

/// `a` requires a member that `b` describes otherwise or does not allow.
bool told_apart_by_member(const Json& document, const Json& a, const Json& b, int& n_left) {
  const auto properties = a.find("properties");
  if (properties == a.end() || !properties->is_object()) return false;
  const auto additional = b.find("additionalProperties");
  const bool closed = additional != b.end() && *additional == false;
  for (const auto& [name, schema] : properties->items()) {
    if (!requires_member(a, name)) continue;
    const Json* other = member(b, name);
    if (other ? disjoint(document, schema, *other, n_left) : closed) return true;
  }
  return false;
}

bool disjoint(const Json& document, const Json& first, const Json& second, int& n_left) {
  if (--n_left < 0) return false;
  const Json& a = resolved(document, first);
  const Json& b = resolved(document, second);
  if (a == false || b == false) return true;
  if (!a.is_object() || !b.is_object() || &a == &b) return false;
  const std::vector<Json> a_values = values_of(a), b_values = values_of(b);
  if (!a_values.empty() && !b_values.empty()) return !share(a_values, b_values);
  const std::vector<std::string> a_types = possible_types(a), b_types = possible_types(b);
  if (!a_types.empty() && !b_types.empty() && !share(a_types, b_types)) return true;
  const bool objects = a_types == std::vector<std::string>{"object"} && a_types == b_types;
  return objects &&
         (told_apart_by_member(document, a, b, n_left) || told_apart_by_member(document, b, a, n_left));
}

}  // namespace

bool are_disjoint(const Json& document, const Json& first, const Json& second) {
  int n_left = kMaxComparisons;
  return disjoint(document, first, second, n_left);
}

}  // namespace forebay
