#include "tokenizer/jinja/methods.h"

#include <algorithm>

namespace forebay::jinja {

const Method* find_method(const Value& self, std::string_view name) {
  std::span<const Method> methods;
  switch (self.kind()) {
    case Kind::kString:
      methods = string_methods();
      break;
    case Kind::kList:
      methods = list_methods();
      break;
    case Kind::kTuple:
      methods = tuple_methods();
      break;
    case Kind::kDict:
      methods = dict_methods();
      break;
    default:
      return nullptr;
  }
  const auto found =
      std::lower_bound(methods.begin(), methods.end(), name,
                       [](const Method& method, std::string_view wanted) { return method.name < wanted; });
  return found != methods.end() && found->name == name ? &*found : nullptr;
}

}  // namespace forebay::jinja
