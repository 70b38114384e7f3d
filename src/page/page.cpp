#include "page/page.h"

#include "page/page_files.h"

namespace forebay {
namespace {

std::string_view type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return "image/svg+xml";
}

}  // namespace

std::optional<PageFile> find_page_file(std::string_view path) {
  constexpr std::string_view kFolder = "/page/";
  std::string_view name = "index.html";
  if (path != "/") {
    if (!path.starts_with(kFolder)) return std::nullopt;
    name = path.substr(kFolder.size());
  }
  for (const EmbeddedFile& file : embedded_page_files())
    if (file.name == name) return PageFile{path, type_of(name), file.bytes};
  return std::nullopt;
}

std::string_view page_security_policy() {
  return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
         "base-uri 'none'; "
         "form-action 'none'; frame-ancestors 'none'";
}

}  // namespace forebay
