/// A program's memory: lines of JSON, each with the hash of itself and of the one before. Lines are added,
/// never changed; what was wrong is corrected by a line that says so.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/storage.h"

namespace forebay::lab {

using Json = nlohmann::ordered_json;

/// Confined. One writer at a time (the runner holds a lock).
class Records {
 public:
  /// Reads and checks what is there. A last line that was cut short by a crash is no error; append() will say
  /// that it is there. Errors: kCorrupt with the line whose hash or predecessor is wrong.
  static Result<Records> open(Storage& storage, const Path& path);

  /// Adds one: `kind` and the members of `body`, then number, time, predecessor and hash. On the disk when it
  /// returns.
  Result<void> append(std::string_view kind, const Json& body);

  const std::vector<Json>& all() const { return records_; }
  /// The newest of this kind whose member equals this, or null.
  const Json* last(std::string_view kind, std::string_view member, std::string_view value) const;

 private:
  Records(Storage& storage, Path path) : storage_(&storage), path_(std::move(path)) {}
  Result<void> write(std::string_view line);

  Storage* storage_;
  Path path_;
  std::vector<Json> records_;
  std::string last_hash_;
  bool line_open_ = false;  // the last line has no end yet
  bool torn_ = false;       // it is no record
};

}  // namespace forebay::lab
