#include <fmt/format.h>

#include "core/log.h"
#include "server/server_impl.h"

namespace forebay {
namespace {

ApiError denied(Access access) {
  switch (access) {
    case Access::kNoKey:
      return {401, "Authorization: the API key is missing or wrong", {}, "invalid_api_key"};
    case Access::kForeignPage:
      return {403, "Origin: pages of other sites may not use this server (--cors allows one)", {}, {}};
    case Access::kForeignHost:
      return {403, "Host: this server answers to localhost only", {}, {}};
    case Access::kGranted:
      break;
  }
  return {};
}

ApiError unanswered(const httplib::Request& request, int status, size_t max_body) {
  if (status == 404)
    return {404, fmt::format("{} {}: there is no such path", request.method, request.path), {}, {}};
  if (status == 413) return {413, fmt::format("body: larger than {} bytes", max_body), "body", {}};
  if (status >= 500) return {status, "the server failed", {}, {}};
  return {status, "the request could not be read", {}, {}};
}

}  // namespace

void Server::Impl::add_gate() {
  http.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    using Handled = httplib::Server::HandlerResponse;
    const std::string authorization = request.get_header_value("Authorization");
    const std::string x_api_key = request.get_header_value("x-api-key");
    const std::string origin = request.get_header_value("Origin");
    const std::string host = request.get_header_value("Host");
    if (!access.cors_origin.empty()) {
      response.set_header("Access-Control-Allow-Origin", access.cors_origin);
      response.set_header("Access-Control-Allow-Headers", "*, Authorization");
      response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    }
    const bool open = request.method == "OPTIONS" || request.path == "/" ||
                      request.path.starts_with("/page/") || request.path == "/health";
    const Access result = check_access(access, {authorization, x_api_key, origin, host}, !open);
    if (result != Access::kGranted) {
      respond_error(request, response, denied(result));
      return Handled::Handled;
    }
    if (request.method == "OPTIONS") {
      response.status = access.cors_origin.empty() ? 403 : 204;
      return Handled::Handled;
    }
    return Handled::Unhandled;
  });
  http.set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
    if (!response.body.empty()) return;
    respond_error(request, response, unanswered(request, response.status, options.max_body_bytes));
  });
  http.set_exception_handler(
      [](const httplib::Request& request, httplib::Response& response, std::exception_ptr e) {
        std::string what = "unknown exception";
        try {
          std::rethrow_exception(e);
        } catch (const std::exception& error) {
          what = error.what();
        } catch (...) {
        }
        log::warn("{} {}: {}", request.method, request.path, what);
        respond_error(request, response, {500, "the server failed: " + what, {}, {}});
      });
}

}  // namespace forebay
