/// Misses against cache size, as a picture. Drawn by gnuplot, which need not be there.
#pragma once

#include <string>
#include <vector>

#include "core/storage.h"
#include "replay/replay.h"

namespace forebay {

/// What gnuplot is told: one line per policy, half-life and bias, writing a PNG to `output`.
std::string plot_script(const RouteLog& log, const std::vector<ReplayRow>& rows, const Path& output);

/// Writes the PNG, whole or not at all. Errors: kNotFound when there is no gnuplot, kInternal when it fails,
/// kIo.
Result<void> plot_misses(Storage& storage, const RouteLog& log, const std::vector<ReplayRow>& rows,
                         const Path& path);

}  // namespace forebay
