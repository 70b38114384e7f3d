/// Text that a command reads whole.
#pragma once

#include <string>
#include <string_view>

#include "forebay/result.h"

#include "core/storage.h"

namespace forebay::cli {

/// Standard input to its end. Errors: kIo; kInvalidArgument above 1 GiB.
Result<std::string> read_standard_input();

/// The text of a file; "-" is standard input.
Result<std::string> read_argument(Storage& storage, const std::string& path);

/// Without the blanks and ends of lines around it.
std::string_view trimmed(std::string_view text);

}  // namespace forebay::cli
