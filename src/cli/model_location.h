/// Where the model is that comes with the program.
#pragma once

#include "forebay/result.h"

#include "core/path.h"

namespace forebay::cli {

/// models/pebble.gguf of the source tree this executable was built in, or share/forebay/pebble.gguf of the
/// prefix it was installed under.
/// Errors: kNotFound naming both places.
Result<Path> embedded_model();

/// As above, for an executable in `directory`.
Result<Path> embedded_model_near(const Path& directory);

}  // namespace forebay::cli
