/// What differs between two runs: their resolved recipes, key by key.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

namespace forebay {

/// The values of a text that Recipe::resolved() made (or of any TOML), each as TOML, by full key. Errors:
/// those of Recipe::parse.
Result<std::map<std::string, std::string>> resolved_values(std::string_view text, std::string_view name);

struct RecipeChange {
  std::string key;
  std::string from, to;  // empty: the key is not there
  bool operator==(const RecipeChange&) const = default;
};
/// Sorted by key.
std::vector<RecipeChange> differences(const std::map<std::string, std::string>& from,
                                      const std::map<std::string, std::string>& to);

}  // namespace forebay
