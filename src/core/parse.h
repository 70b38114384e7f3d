/// Text from users to numbers. Messages quote the text; callers add which option it was with Error::in.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

namespace forebay {

/// "8G", "512M", "1.5GiB", "4096": K, M, G, T, alone or with iB, are powers of 1024; KB, MB, GB, TB are
/// powers of 1000. Case and one space before the unit are ignored; a fraction of a byte is dropped.
/// Errors: kInvalidArgument, also for more than 64 bits hold.
Result<uint64_t> parse_bytes(std::string_view text);

/// "a,b,c" at its separators; empty items stay, for whoever reads them to refuse.
std::vector<std::string_view> split(std::string_view list, char separator = ',');

/// The lines of a text, without their ends.
std::vector<std::string> lines_of(std::string_view text);

/// A whole decimal number in [min, max], nothing before or after it.
Result<int64_t> parse_int(std::string_view text, int64_t min = std::numeric_limits<int64_t>::min(),
                          int64_t max = std::numeric_limits<int64_t>::max());

/// A finite decimal number in [min, max], nothing before or after it.
Result<double> parse_double(std::string_view text, double min = std::numeric_limits<double>::lowest(),
                            double max = std::numeric_limits<double>::max());

}  // namespace forebay
