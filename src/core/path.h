#pragma once

#include <filesystem>

namespace forebay {

using Path = std::filesystem::path;

}  // namespace forebay
