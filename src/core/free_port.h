#pragma once

#include "forebay/result.h"

namespace forebay {

/// A TCP port that nobody listens on now, another one at each call: for whoever must name a port to several
/// processes before any of them listens. It lies below the ports that outgoing connections are given: one of
/// those can be taken in between, and a client that waits for its server there may meet itself.
/// kIo when none of many is free. Any thread.
Result<int> free_port();

}  // namespace forebay
