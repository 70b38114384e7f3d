#include "recipe/diff.h"

#include <utility>

#include "recipe/toml.h"

namespace forebay {

Result<std::map<std::string, std::string>> resolved_values(std::string_view text, std::string_view name) {
  const std::map<std::string, toml_text::Entry> entries = TRY(toml_text::parse(text, name));
  std::map<std::string, std::string> values;
  for (const auto& [key, entry] : entries) values[key] = toml_text::literal(entry.value);
  return values;
}

std::vector<RecipeChange> differences(const std::map<std::string, std::string>& from,
                                      const std::map<std::string, std::string>& to) {
  std::map<std::string, RecipeChange> changes;
  for (const auto& [key, value] : from) changes[key] = {key, value, ""};
  for (const auto& [key, value] : to) {
    changes[key].key = key;
    changes[key].to = value;
  }
  std::vector<RecipeChange> out;
  for (auto& [key, change] : changes)
    if (change.from != change.to) out.push_back(std::move(change));
  return out;
}

}  // namespace forebay
