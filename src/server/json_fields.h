/// Reads a request's JSON: every mistake becomes one line that begins with the field's name.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "forebay/result.h"

namespace forebay {

using Json = nlohmann::ordered_json;

/// Strict JSON (no NaN, no comments, no raw control characters, valid UTF-8), at most 100 levels deep.
/// Errors: kInvalidArgument, "body: ...".
Result<Json> parse_json(std::string_view text, std::string_view name = "body");
/// parse_json of an object.
Result<Json> parse_object(std::string_view text, std::string_view name = "body");
/// Text of any bytes as JSON would have it: what is not UTF-8 becomes U+FFFD.
std::string dump(const Json& json);

/// An object's members by name and type. Absent and null are the same. Errors: kInvalidArgument naming the
/// member with its path. The object must outlive it. Confined.
class Fields {
 public:
  explicit Fields(const Json& object, std::string path = {}) : object_(&object), path_(std::move(path)) {}

  /// Null when there is none.
  const Json* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  Result<std::optional<bool>> boolean(std::string_view name) const;
  /// Numbers with a fraction of zero count.
  Result<std::optional<int64_t>> integer(std::string_view name, int64_t min, int64_t max) const;
  Result<std::optional<double>> number(std::string_view name, double min, double max) const;
  Result<std::optional<std::string>> string(std::string_view name) const;
  /// One of `choices`, which are separated by '|'.
  Result<std::optional<std::string>> choice(std::string_view name, std::string_view choices) const;
  Result<const Json*> object(std::string_view name) const;  // null when there is none
  Result<const Json*> list(std::string_view name) const;
  Result<std::string> required_string(std::string_view name) const;
  Result<const Json*> required_list(std::string_view name) const;

  /// "messages[2].content" for "content".
  std::string path_of(std::string_view name) const;
  Error wrong(std::string_view name, std::string_view expected) const;
  Error refuse(std::string_view name, std::string_view why) const;

 private:
  const Json* object_;
  std::string path_;
};

/// A value for error messages, short: 'text', 3.5, a list, ...
std::string describe(const Json& value);

}  // namespace forebay
