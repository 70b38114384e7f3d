// CLI11 splits the command line into flags and values; it is slow to compile and stays in this file.
#include "cli/flags.h"

#include <algorithm>
#include <list>
#include <string>
#include <utility>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace forebay::cli {
namespace {

constexpr size_t kHelpWidth = 100;
constexpr size_t kHelpColumn = 30;  // where the explanations begin

/// Columns, for text whose characters are one column wide.
size_t columns(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

/// A number of bytes as one would type it: "8G".
std::string short_bytes(const std::string& digits) {
  uint64_t bytes = std::stoull(digits);
  size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit < 4; ++unit) bytes /= 1024;
  return unit == 0 ? digits : fmt::format("{}{}", bytes, "KMGT"[unit - 1]);
}

}  // namespace

std::string wrap(std::string_view text, size_t width, size_t indent) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column > indent && column + 1 + columns(word) > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns(word);
  }
  return out;
}

std::string FlagTable::Row::long_name() const {
  const size_t comma = names.rfind(',');
  return comma == std::string::npos ? names : names.substr(comma + 1);
}

void FlagTable::section(std::string title) {
  sections_.push_back(std::move(title));
}

void FlagTable::add(Row row, Assign assign, Show show) {
  row.section = static_cast<int>(sections_.size()) - 1;
  row.assign = std::move(assign);
  row.show = std::move(show);
  rows_.push_back(std::move(row));
}

void FlagTable::toggle(std::string names, bool& variable, std::string help) {
  add(
      {.names = std::move(names), .value = {}, .help = std::move(help), .is_toggle = true},
      [&variable](std::string_view) -> Result<void> {
        variable = true;
        return {};
      },
      [&variable] { return variable ? "true" : "false"; });
}

void FlagTable::text(std::string names, std::string value, std::string& variable, std::string help) {
  add(
      {.names = std::move(names), .value = std::move(value), .help = std::move(help), .is_text = true},
      [&variable](std::string_view text) -> Result<void> {
        variable = text;
        return {};
      },
      [&variable] { return variable.empty() ? std::nullopt : std::optional(variable); });
}

void FlagTable::text(std::string names, std::string value, std::optional<std::string>& variable,
                     std::string help) {
  add(
      {.names = std::move(names), .value = std::move(value), .help = std::move(help), .is_text = true},
      [&variable](std::string_view text) -> Result<void> {
        variable = text;
        return {};
      },
      [&variable] { return variable; });
}

void FlagTable::texts(std::string names, std::string value, std::vector<std::string>& variable,
                      std::string help) {
  add(
      {.names = std::move(names),
       .value = std::move(value),
       .help = std::move(help),
       .is_text = true,
       .repeats = true},
      [&variable](std::string_view text) -> Result<void> {
        variable.emplace_back(text);
        return {};
      },
      [&variable]() -> std::optional<std::string> {
        if (variable.empty()) return std::nullopt;
        return fmt::format("{}", fmt::join(variable, ", "));
      });
}

void FlagTable::many(std::string names, std::string value, std::vector<std::string>& variable,
                     std::string help) {
  texts(std::move(names), std::move(value), variable, std::move(help));
  rows_.back().takes_many = true;
}

void FlagTable::choice(std::string names, std::vector<std::string> choices,
                       std::optional<std::string>& variable, std::string help) {
  std::string value = fmt::format("{}", fmt::join(choices, "|"));
  add(
      {.names = std::move(names), .value = std::move(value), .help = std::move(help), .is_text = true},
      [&variable, choices = std::move(choices)](std::string_view text) -> Result<void> {
        if (std::find(choices.begin(), choices.end(), text) == choices.end())
          return Error{Code::kInvalidArgument,
                       fmt::format("'{}' is not one of {}", text, fmt::join(choices, ", "))};
        variable = text;
        return {};
      },
      [&variable] { return variable; });
}

void FlagTable::bytes(std::string names, std::string value, uint64_t& variable, std::string help) {
  add(
      {.names = std::move(names), .value = std::move(value), .help = std::move(help), .is_bytes = true},
      [&variable](std::string_view text) -> Result<void> {
        variable = TRY(parse_bytes(text));
        return {};
      },
      [&variable] { return shown(variable); });
}

std::optional<std::string> FlagTable::shown(int64_t value) {
  return fmt::format("{}", value);
}
std::optional<std::string> FlagTable::shown(uint64_t value) {
  return fmt::format("{}", value);
}
std::optional<std::string> FlagTable::shown(float value) {
  return fmt::format("{}", value);
}
std::optional<std::string> FlagTable::shown(double value) {
  return fmt::format("{}", value);
}

Result<FlagTable::Parsed> FlagTable::parse(std::span<const char* const> arguments) {
  std::list<std::vector<std::string>> given;  // per row; a list, so that rows can be pointed at
  CLI::App app;
  app.set_help_flag("-h,--help", "");
  app.allow_extras();
  try {
    for (const Row& row : rows_) {
      std::vector<std::string>& values = given.emplace_back();
      const auto keep = [&values](const CLI::results_t& results) {
        values = results;
        return true;
      };
      CLI::Option* option =
          row.is_toggle
              ? app.add_flag_callback(row.names, [&values] { values.emplace_back(); })
              : app.add_option(row.names, keep)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      // Else "[1, 2]" as a value would be taken apart.
      option->allow_extra_args(false);
      if (row.takes_many) option->expected(1, 1 << 16)->allow_extra_args(row.is_positional());
    }
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::CallForHelp&) {
    return Parsed::kHelp;
  } catch (const CLI::Error& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return Error{Code::kInvalidArgument, message};
  }
  bool after_mark = false;  // the "--" that ends the flags is among the extras too
  for (const std::string& extra : app.remaining()) {
    if (extra == "--" && !std::exchange(after_mark, true)) continue;
    const bool is_flag = !after_mark && extra.size() > 1 && extra[0] == '-';
    return Error{Code::kInvalidArgument,
                 fmt::format("{} '{}'", is_flag ? "unknown flag" : "unexpected argument", extra)};
  }

  auto values = given.begin();
  for (const Row& row : rows_) {
    if (values->size() > 1 && !row.repeats)
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: given {} times", row.long_name(), values->size())};
    for (const std::string& value : *values) {
      Result<void> assigned = row.assign(value);
      if (!assigned) return std::move(assigned).error().in(row.long_name());
    }
    ++values;
  }
  return Parsed::kValues;
}

std::string FlagTable::help() const {
  std::string out;
  int section = -2;
  for (const Row& row : rows_) {
    if (row.section != section) {
      section = row.section;
      out += fmt::format("\n{}\n", section < 0 ? "Arguments" : sections_[section]);
    }
    std::string names = row.names;
    if (const size_t comma = names.find(','); comma != std::string::npos) names.insert(comma + 1, 1, ' ');
    // Long spellings line up below each other.
    std::string left = (names.starts_with("--") ? "      " : "  ") + names;
    if (!row.value.empty() && !row.is_positional()) left += " " + row.value;
    std::string help = row.help;
    std::optional<std::string> value = row.show();
    if (value && row.is_bytes) value = short_bytes(*value);
    if (value && !row.is_toggle && !value->empty()) help += fmt::format(" [{}]", *value);
    if (row.repeats) help += "; may be repeated";
    if (columns(left) + 2 > kHelpColumn)
      left += '\n' + std::string(kHelpColumn, ' ');
    else
      left.resize(left.size() + kHelpColumn - columns(left), ' ');
    out += left + wrap(help, kHelpWidth, kHelpColumn) + '\n';
  }
  return out;
}

std::vector<Setting> FlagTable::settings() const {
  std::vector<Setting> settings;
  for (const Row& row : rows_) {
    const std::optional<std::string> value = row.show();
    if (!value) continue;
    std::string name = row.long_name();
    name.erase(0, name.find_first_not_of('-'));
    settings.push_back({std::move(name), *value, row.is_text});
  }
  return settings;
}

}  // namespace forebay::cli
