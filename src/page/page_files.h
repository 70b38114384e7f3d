/// The files of web/, put into the program by CMake.
#pragma once

#include <span>
#include <string_view>

namespace forebay {

struct EmbeddedFile {
  std::string_view name;
  std::string_view bytes;
};
std::span<const EmbeddedFile> embedded_page_files();

}  // namespace forebay
