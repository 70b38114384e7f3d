#include <fmt/format.h>

#include "recipe/toml.h"

namespace forebay::toml_text {

Result<std::map<std::string, Entry>> parse(std::string_view, std::string_view name) {
  return Error{
      Code::kUnsupported,
      fmt::format("{}: this build reads no TOML: install libtomlplusplus-dev and configure again", name)};
}

}  // namespace forebay::toml_text
