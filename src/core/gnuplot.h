/// Pictures drawn by gnuplot, which need not be there.
#pragma once

#include <string>
#include <string_view>

#include "forebay/result.h"

#include "core/storage.h"

namespace forebay {

/// In gnuplot's single quotes, where nothing but the quote itself is special.
std::string gnuplot_quoted(std::string_view text);

/// Runs a script that writes `partial`, and puts that in the place of `path`: whole or not at all. Errors:
/// kNotFound when there is no gnuplot, kInternal when it fails or writes nothing, kIo.
Result<void> draw_with_gnuplot(Storage& storage, const std::string& script, const Path& partial,
                               const Path& path);

}  // namespace forebay
