/// Token ids as people and other programs write them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "core/storage.h"

namespace forebay::cli {

/// "1,2,3", "1 2 3", "[1, 2, 3]" or {"ids": [1, 2, 3]} (what `forebay tokenize --json` prints).
/// Errors: kInvalidArgument naming the item and its place.
Result<std::vector<int32_t>> parse_ids(std::string_view text);

/// `argument` is such a list, or else the name of a file with one; "-" is standard input.
Result<std::vector<int32_t>> read_ids(Storage& storage, const std::string& argument);

}  // namespace forebay::cli
