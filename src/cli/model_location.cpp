#include "cli/model_location.h"

#include <system_error>

#include <fmt/format.h>

namespace forebay::cli {

Result<Path> embedded_model_near(const Path& directory) {
  // <source>/build/<preset>/forebay and <prefix>/bin/forebay.
  const Path in_source = (directory / "../../models/pebble.gguf").lexically_normal();
  const Path installed = (directory / "../share/forebay/pebble.gguf").lexically_normal();
  for (const Path& path : {in_source, installed}) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return path;
  }
  return Error{Code::kNotFound, fmt::format("no model: there is no {} and no {}; name one with -m FILE",
                                            in_source.string(), installed.string())};
}

Result<Path> embedded_model() {
  std::error_code error;
  const Path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    return Error{Code::kIo, fmt::format("/proc/self/exe: {}; name a model with -m FILE", error.message())};
  return embedded_model_near(executable.parent_path());
}

}  // namespace forebay::cli
