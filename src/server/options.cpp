#include <fmt/format.h>

#include "server/access.h"
#include "server/server.h"

namespace forebay {

Result<void> validate(const ServerOptions& o) {
  if (!is_loopback(o.host) && o.api_key.empty() && !o.allow_no_key)
    return Error{
        Code::kInvalidArgument,
        fmt::format("--host {}: other machines can reach it, so --api-key is needed (or --no-key)", o.host)};
  return {};
}

}  // namespace forebay
