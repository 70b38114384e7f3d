/// The web page, whose files are part of the program.
#pragma once

#include <optional>
#include <string_view>

namespace forebay {

struct PageFile {
  std::string_view path;  // of the request: "/", "/page/main.js"
  std::string_view content_type;
  std::string_view content;
};

/// Nothing for a path that is not one of the page's. Thread-safe.
std::optional<PageFile> find_page_file(std::string_view path);

/// What a browser lets the page do: its own files and this server's API, nothing inline, no frames.
std::string_view page_security_policy();

}  // namespace forebay
