#include "page/page.h"
#include "server/server_impl.h"

namespace forebay {

void Server::Impl::add_page_routes() {
  const auto send = [](const httplib::Request& request, httplib::Response& response) {
    const std::optional<PageFile> file = find_page_file(request.path);
    if (!file) {
      response.status = 404;
      return;
    }
    response.set_header("Content-Security-Policy", std::string(page_security_policy()));
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cache-Control", "no-cache");
    response.set_content(file->content.data(), file->content.size(), std::string(file->content_type));
  };
  http.Get("/", send);
  http.Get("/page/[a-z.]+", send);
}

}  // namespace forebay
