/// Models split over files PREFIX-00001-of-0000N.gguf: names, and the keys that number the shards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/path.h"
#include "gguf/gguf.h"

namespace forebay::gguf {

/// A place in a split model as file names count it.
struct ShardName {
  std::string prefix;
  int number = 1;  // 1-based
  int count = 1;
};

/// From a path's last part; empty when it does not follow the pattern.
std::optional<ShardName> parse_shard_name(const Path& path);
/// The file of another number, beside `path`.
Path shard_path(const Path& path, const ShardName& name, int number);

/// split.count; 1 for a file that is a whole model. Errors: a count that five digits cannot name.
Result<int> shard_count(const GgufMetadata& metadata);

/// Checks that the keys of shard `number` of `count` say so, and that its model has n_tensors tensors
/// where it says that.
Result<void> check_shard_keys(const GgufMetadata& metadata, int number, int count, uint64_t n_tensors);

}  // namespace forebay::gguf
