/// Typed access to the JSON files of a checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "forebay/result.h"

#include "core/storage.h"

namespace forebay::convert {

/// An object whose members are read by name and kind. A member that is null counts as absent. Errors:
/// kNotFound for a member that must be there, kCorrupt for one of another kind or range; both name the file.
class JsonObject {
 public:
  /// `where` is what errors call it. kCorrupt with the parser's position.
  static Result<JsonObject> parse(std::string where, std::string_view text);
  /// As parse(), and errors of the file system.
  static Result<JsonObject> read(Storage& storage, const Path& path);
  /// As read(), but nothing when there is no such file.
  static Result<std::optional<JsonObject>> read_if_exists(Storage& storage, const Path& path);
  JsonObject(std::string where, nlohmann::json value) : where_(std::move(where)), value_(std::move(value)) {}

  const std::string& where() const { return where_; }
  /// Null when absent.
  const nlohmann::json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Nothing when absent or no object.
  std::optional<JsonObject> object(std::string_view key) const;

  Result<uint64_t> integer(std::string_view key, uint64_t low, uint64_t high) const;
  Result<uint64_t> integer_or(std::string_view key, uint64_t fallback, uint64_t low, uint64_t high) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string> string_or(std::string_view key, std::string fallback) const;
  /// Empty when absent; a single integer reads as a list of one.
  Result<std::vector<uint64_t>> integers(std::string_view key) const;
  Result<std::vector<std::string>> strings(std::string_view key) const;

  /// "dir/config.json: key is 7, wanted ..."
  Error wrong(std::string_view key, std::string_view wanted, Code code = Code::kCorrupt) const;

 private:
  std::string where_;
  nlohmann::json value_;
};

}  // namespace forebay::convert
