#include "server/metrics.h"
#include "server/server_impl.h"

namespace forebay {

void Server::Impl::add_status_routes() {
  using Request = httplib::Request;
  using Response = httplib::Response;
  http.Get("/health", [this](const Request&, Response& response) {
    if (stopping) return respond(response, 503, {{"status", "shutting down"}});
    const SchedulerStatus status = scheduler->status();
    if (status.busy_seconds >= static_cast<double>(options.stall_seconds))
      return respond(response, 503,
                     {{"status", "stuck"}, {"seconds", status.busy_seconds}, {"at", status.busy_with}});
    respond(response, 200, {{"status", "ok"}});
  });
  http.Get("/metrics", [this](const Request&, Response& response) {
    response.set_content(prometheus_text(scheduler->status()), "text/plain; version=0.0.4");
  });
  http.Get("/v1/status", [this](const Request&, Response& response) {
    respond(response, 200, status_json(scheduler->status(), engine.info(), engine.plan()));
  });
}

}  // namespace forebay
