#include "recipe/recipe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include <fmt/format.h>

#include "core/bytes.h"
#include "recipe/toml.h"

namespace forebay {

using toml_text::Other;
using toml_text::Scalar;

struct Recipe::Table {
  struct Given {
    toml_text::Value value;
    std::string place;                // "recipes/a.toml:12" or "--set"
    int line = 0;                     // settings come after the file
    std::optional<std::string> text;  // of a setting, as it was typed
    bool asked = false;
  };
  std::map<std::string, Given> given;

  Given* find(std::string_view key) {
    const auto at = given.find(std::string(key));
    if (at == given.end()) return nullptr;
    at->second.asked = true;
    return &at->second;
  }
};

namespace {

constexpr uint64_t kMostBytes = 16 << 20;

/// On one line, not longer than a message bears.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, 60));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return out;
}

std::string shown(const toml_text::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return "'" + shown(std::string_view(*text)) + "'";
  return shown(std::string_view(toml_text::literal(value)));
}

template <typename T>
std::string limits(std::string_view what, T min, T max) {
  const bool from = min != std::numeric_limits<T>::lowest();
  const bool to = max != std::numeric_limits<T>::max();
  if (from && to) return fmt::format("{} from {} to {}", what, min, max);
  if (from) return fmt::format("{} of at least {}", what, min);
  if (to) return fmt::format("{} of at most {}", what, max);
  return std::string(what);
}

std::optional<double> as_number(const Scalar& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<double> as_number(const toml_text::Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  return std::nullopt;
}

/// How many characters to change, add or remove (Levenshtein).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// A setting's value: TOML if it is one value, else text.
toml_text::Value setting_value(const std::string& text) {
  // A line break would let a value bring keys of its own.
  if (text.find_first_of("\n\r") != std::string::npos) return text;
  const auto parsed = toml_text::parse("v = " + text, "");
  if (!parsed || parsed->size() != 1 || !parsed->contains("v")) return text;
  const toml_text::Value& value = parsed->at("v").value;
  return std::holds_alternative<Other>(value) ? toml_text::Value(text) : value;
}

}  // namespace

Result<Recipe> Recipe::read(Storage& storage, const Path& path, std::span<const std::string> settings) {
  const std::string text = TRY(read_text(storage, path, kMostBytes));
  return parse(text, path.string(), settings);
}

Result<Recipe> Recipe::parse(std::string_view toml, std::string name, std::span<const std::string> settings) {
  Recipe recipe;
  recipe.name_ = std::move(name);
  recipe.table_ = std::make_shared<Table>();
  auto& given = recipe.table_->given;
  for (auto& [key, entry] : TRY(toml_text::parse(toml, recipe.name_)))
    given[key] = {std::move(entry.value), fmt::format("{}:{}", recipe.name_, entry.line), entry.line, {}};
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{Code::kInvalidArgument,
                   fmt::format("--set {}: section.key=value is wanted", shown(std::string_view(setting)))};
    const std::string value = setting.substr(equals + 1);
    given[setting.substr(0, equals)] = {setting_value(value), "--set", std::numeric_limits<int>::max(),
                                        value};
  }
  return recipe;
}

void Recipe::get(std::string_view key, bool& value) {
  if (const auto* given = table_->find(key)) {
    if (const bool* flag = std::get_if<bool>(&given->value))
      value = *flag;
    else
      refuse(key, shown(given->value), "true or false");
  }
  values_[std::string(key)] = toml_text::literal(value);
}

void Recipe::get(std::string_view key, int64_t& value, int64_t min, int64_t max) {
  if (const auto* given = table_->find(key)) {
    const int64_t* whole = std::get_if<int64_t>(&given->value);
    if (whole != nullptr && *whole >= min && *whole <= max)
      value = *whole;
    else
      refuse(key, shown(given->value), limits("a whole number", min, max));
  }
  values_[std::string(key)] = toml_text::literal(value);
}

void Recipe::get(std::string_view key, double& value, double min, double max) {
  if (const auto* given = table_->find(key)) {
    const std::optional<double> number = as_number(given->value);
    if (number && *number >= min && *number <= max)  // NaN is neither
      value = *number;
    else
      refuse(key, shown(given->value), limits("a number", min, max));
  }
  values_[std::string(key)] = toml_text::literal(value);
}

void Recipe::get(std::string_view key, std::string& value) {
  if (std::optional<std::string> text = word(key)) value = *std::move(text);
  chosen(key, value);
}

void Recipe::get(std::string_view key, std::vector<double>& value) {
  if (const auto* given = table_->find(key)) {
    const auto* list = std::get_if<std::vector<Scalar>>(&given->value);
    std::vector<double> numbers;
    if (list != nullptr)
      for (const Scalar& element : *list)
        if (const std::optional<double> number = as_number(element)) numbers.push_back(*number);
    if (list != nullptr && numbers.size() == list->size())
      value = std::move(numbers);
    else
      refuse(key, shown(given->value), "a list of numbers");
  }
  values_[std::string(key)] = toml_text::literal(std::vector<Scalar>(value.begin(), value.end()));
}

void Recipe::get(std::string_view key, std::vector<std::string>& value) {
  if (const auto* given = table_->find(key)) {
    const auto* list = std::get_if<std::vector<Scalar>>(&given->value);
    std::vector<std::string> texts;
    if (list != nullptr)
      for (const Scalar& element : *list)
        if (const auto* text = std::get_if<std::string>(&element)) texts.push_back(*text);
    if (list != nullptr && texts.size() == list->size())
      value = std::move(texts);
    else
      refuse(key, shown(given->value), "a list of texts");
  }
  values_[std::string(key)] = toml_text::literal(std::vector<Scalar>(value.begin(), value.end()));
}

Result<void> Recipe::finish() const {
  if (!mistakes_.empty()) return Error{Code::kInvalidArgument, mistakes_.front()};
  for (const auto& [key, given] : table_->given) {
    if (given.asked) continue;
    std::string nearest;
    size_t best = std::numeric_limits<size_t>::max();
    for (const auto& [known, value] : values_)
      if (const size_t d = distance(key, known); d < best) {
        best = d;
        nearest = known;
      }
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: nothing asks for {}{}", given.place, shown(std::string_view(key)),
                             nearest.empty() ? "" : "; the nearest key is " + nearest)};
  }
  return {};
}

std::string Recipe::resolved() const {
  std::string out;
  for (const auto& [key, value] : values_) out += fmt::format("{} = {}\n", key, value);
  return out;
}

uint64_t Recipe::hash() const {
  const std::string text = resolved();
  return checksum(std::as_bytes(std::span(text)));
}

std::vector<std::string> Recipe::names_below(std::string_view section) const {
  const std::string prefix = std::string(section) + ".";
  std::map<std::string, int> first_line;
  for (const auto& [key, given] : table_->given) {
    if (!key.starts_with(prefix)) continue;
    const std::string name = key.substr(prefix.size(), key.find('.', prefix.size()) - prefix.size());
    const auto [at, is_new] = first_line.emplace(name, given.line);
    at->second = std::min(at->second, given.line);
  }
  std::vector<std::string> names;
  for (const auto& [name, line] : first_line) names.push_back(name);
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return first_line[a] < first_line[b]; });
  return names;
}

std::optional<std::string> Recipe::word(std::string_view key) {
  const auto* given = table_->find(key);
  if (given == nullptr) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&given->value)) return *text;
  // --set run.name=120 is text where text is asked for.
  if (given->text) return given->text;
  refuse(key, shown(given->value), "text in quotes");
  return std::nullopt;
}

void Recipe::chosen(std::string_view key, std::string_view word) {
  values_[std::string(key)] = toml_text::quoted(word);
}

void Recipe::refuse(std::string_view key, std::string_view seen, std::string wanted) {
  mistakes_.push_back(fmt::format("{}: {} is {}: {} is wanted", table_->given.at(std::string(key)).place, key,
                                  shown(seen), wanted));
}

}  // namespace forebay
