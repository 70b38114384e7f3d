/// A command's flags as one table. A row is a spelling, a variable, its limits and its meaning; parsing, help
/// and the printed configuration are made from the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "core/parse.h"

namespace forebay::cli {

struct IntRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};
struct NumberRange {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
};

/// A row's name and value once everything is known.
struct Setting {
  std::string name;  // "top-k"
  std::string value;
  bool is_text = false;  // else a number or true/false
};

/// Confined. Variables must outlive the table; a std::optional variable stays empty until its flag is given.
class FlagTable {
 public:
  /// The rows after this stand under `title` in the help.
  void section(std::string title);

  // `names` is "-n,--tokens"; without dashes it is a positional argument. `value` names the value in the
  // help. Helps are sentences without a full stop; the default is added to them.
  void toggle(std::string names, bool& variable, std::string help);
  void text(std::string names, std::string value, std::string& variable, std::string help);
  void text(std::string names, std::string value, std::optional<std::string>& variable, std::string help);
  /// May be given more than once.
  void texts(std::string names, std::string value, std::vector<std::string>& variable, std::string help);
  /// One or more values after one flag.
  void many(std::string names, std::string value, std::vector<std::string>& variable, std::string help);
  void choice(std::string names, std::vector<std::string> choices, std::optional<std::string>& variable,
              std::string help);
  void bytes(std::string names, std::string value, uint64_t& variable, std::string help);
  template <typename T>  // int, int64_t, uint64_t or a std::optional of one
  void integer(std::string names, std::string value, T& variable, IntRange range, std::string help) {
    add(
        {.names = std::move(names), .value = std::move(value), .help = std::move(help)},
        [&variable, range](std::string_view text) -> Result<void> {
          variable = static_cast<Plain<T>>(TRY(parse_int(text, range.min, range.max)));
          return {};
        },
        [&variable] { return shown(variable); });
  }
  template <typename T>  // float, double or a std::optional of one
  void number(std::string names, std::string value, T& variable, NumberRange range, std::string help) {
    add(
        {.names = std::move(names), .value = std::move(value), .help = std::move(help)},
        [&variable, range](std::string_view text) -> Result<void> {
          variable = static_cast<Plain<T>>(TRY(parse_double(text, range.min, range.max)));
          return {};
        },
        [&variable] { return shown(variable); });
  }

  enum class Parsed { kValues, kHelp };
  /// Assigns what `arguments` say. Errors: one line naming the flag.
  Result<Parsed> parse(std::span<const char* const> arguments);

  /// The rows as a table for people, at most 100 columns wide.
  std::string help() const;
  /// Every row that has a value now, in order.
  std::vector<Setting> settings() const;

 private:
  using Assign = std::function<Result<void>(std::string_view)>;
  using Show = std::function<std::optional<std::string>()>;  // empty: no value

  struct Row {
    std::string names;
    std::string value = {};
    std::string help = {};
    bool is_toggle = false;
    bool is_text = false;
    bool is_bytes = false;
    bool repeats = false;
    bool takes_many = false;
    int section = -1;
    Assign assign = {};
    Show show = {};

    bool is_positional() const { return names[0] != '-'; }
    std::string long_name() const;  // "--tokens", "MODEL"
  };

  template <typename T>
  struct PlainOf {
    using Type = T;
  };
  template <typename T>
  struct PlainOf<std::optional<T>> {
    using Type = T;
  };
  template <typename T>
  using Plain = typename PlainOf<T>::Type;

  static std::optional<std::string> shown(int64_t value);
  static std::optional<std::string> shown(int value) { return shown(int64_t{value}); }
  static std::optional<std::string> shown(uint64_t value);
  static std::optional<std::string> shown(float value);
  static std::optional<std::string> shown(double value);
  template <typename T>
  static std::optional<std::string> shown(const std::optional<T>& value) {
    return value ? shown(*value) : std::nullopt;
  }

  void add(Row row, Assign assign, Show show);

  std::vector<std::string> sections_;
  std::vector<Row> rows_;
};

/// Words of `text` over lines of at most `width` columns; lines after the first begin with `indent` spaces.
std::string wrap(std::string_view text, size_t width, size_t indent);

}  // namespace forebay::cli
