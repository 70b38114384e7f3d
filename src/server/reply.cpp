#include "server/reply.h"

#include <ctime>

#include <fmt/format.h>

namespace forebay {

ApiError to_api_error(const Error& error) {
  ApiError out{500, error.message, {}, {}};
  switch (error.code) {
    case Code::kInvalidArgument:
      out.status = 400;
      out.param = error.message.substr(0, error.message.find(':'));
      if (error.message.find("the context holds") != std::string::npos) out.code = "context_length_exceeded";
      break;
    case Code::kUnsupported:
      out.status = 501;
      break;
    case Code::kNotFound:
      out.status = 404;
      break;
    case Code::kOutOfMemory:
      out.status = 429;
      break;
    case Code::kCancelled:
    case Code::kIo:
      out.status = 503;
      break;
    case Code::kCorrupt:
    case Code::kInternal:
      break;
  }
  return out;
}

std::string random_id(std::string_view prefix) {
  return std::string(prefix) + random_call_id().substr(std::string_view("call_").size());
}

int64_t unix_now() {
  return std::time(nullptr);
}

std::string sse(std::string_view event, const Json& data) {
  if (event.empty()) return fmt::format("data: {}\n\n", dump(data));
  return fmt::format("event: {}\ndata: {}\n\n", event, dump(data));
}

}  // namespace forebay
