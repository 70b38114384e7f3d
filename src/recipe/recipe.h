/// A recipe: the settings of a training run, from a TOML file and from `--set key=value`. Parts of the
/// trainer ask for their keys; what nobody asked for is a mistake in the recipe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "forebay/result.h"

#include "core/storage.h"

namespace forebay {

/// Confined. Read it, call get() for every key of the run, then finish().
class Recipe {
 public:
  /// `settings` are "section.key=value", later ones win; a value that is not TOML is taken as text. Errors:
  /// kNotFound, kIo, kCorrupt with line and column, kInvalidArgument for a setting without '=', kUnsupported
  /// in a build without toml++.
  static Result<Recipe> read(Storage& storage, const Path& path, std::span<const std::string> settings);
  static Result<Recipe> parse(std::string_view toml, std::string name, std::span<const std::string> settings);

  /// `key` is "section.name". Writes the recipe's value to `value`, or leaves the default there. A value of
  /// another type or outside the limits is kept for finish() to report; whole numbers are read as numbers
  /// too.
  void get(std::string_view key, bool& value);
  void get(std::string_view key, int64_t& value, int64_t min, int64_t max);
  void get(std::string_view key, double& value, double min, double max);
  void get(std::string_view key, std::string& value);
  void get(std::string_view key, std::vector<double>& value);
  void get(std::string_view key, std::vector<std::string>& value);
  /// One of a few words.
  template <typename E>
  void get(std::string_view key, E& value, std::span<const std::pair<std::string_view, E>> words);

  /// The first mistake: a wrong value ("recipes/a.toml:12: grpo.lr is 'fast': a number from 0 to 1 is
  /// wanted"), or a key that nobody asked for, with the nearest one that exists.
  Result<void> finish() const;

  /// Every key that was asked for with the value in use, sorted, as TOML that reads back as the same recipe.
  /// This, not the file, is what a run records.
  std::string resolved() const;
  /// Of resolved().
  uint64_t hash() const;
  /// The resolved values by key, for comparing two runs.
  const std::map<std::string, std::string>& values() const { return values_; }
  const std::string& name() const { return name_; }

  /// The names directly below `section` in the order of the file: for files whose sections are not known in
  /// advance ("cell" -> "dense", "prf").
  std::vector<std::string> names_below(std::string_view section) const;

 private:
  struct Table;                                           // what the file and the settings said, by full key
  std::optional<std::string> word(std::string_view key);  // for the template: the text, marked as asked for
  void chosen(std::string_view key, std::string_view word);
  void refuse(std::string_view key, std::string_view seen, std::string wanted);

  std::string name_;
  std::shared_ptr<Table> table_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> mistakes_;
};

template <typename E>
void Recipe::get(std::string_view key, E& value, std::span<const std::pair<std::string_view, E>> words) {
  if (const std::optional<std::string> given = word(key)) {
    std::string known;
    bool found = false;
    for (const auto& [name, meaning] : words) {
      known += (known.empty() ? "" : ", ") + std::string(name);
      if (name != *given) continue;
      value = meaning;
      found = true;
    }
    if (!found) refuse(key, "'" + *given + "'", "one of " + known);
  }
  for (const auto& [name, meaning] : words)
    if (meaning == value) chosen(key, name);
}

}  // namespace forebay
