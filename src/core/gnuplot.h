/// Pictures of results, drawn by gnuplot, which need not be there.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/storage.h"

namespace forebay {

/// In gnuplot's single quotes, where nothing but the quote itself is special.
std::string gnuplot_quoted(std::string_view text);
/// A script's first lines: a PNG of 1000 x 640 at `output`.
std::string gnuplot_png(const Path& output);

/// Sets the range of an axis ("x", "y") that has one value, or none, in all of `values`: gnuplot would warn
/// of it. Nothing where they differ. Good for logarithmic axes too where values are positive.
std::string gnuplot_range(std::string_view axis, std::span<const double> values);

/// Writes the PNG, whole or not at all; `script` gets the path to draw to. Errors: kNotFound when there is no
/// gnuplot, kInternal when it fails, kIo.
Result<void> draw_png(Storage& storage, const Path& path,
                      const std::function<std::string(const Path& output)>& script);

}  // namespace forebay
