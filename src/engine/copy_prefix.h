/// One session begins with what another has read.
#pragma once

#include <cstdint>
#include <span>

#include "forebay/engine.h"

namespace forebay {

/// Copies into `to` the state of as many of the prompt's first tokens as `from` can give, where that is worth
/// more than what `to` has itself; `from` stays as it is. Returns the tokens; 0: nothing was copied. The copy
/// has every bit that reading the tokens would give: moved rows (reuse_edits) are not copied.
/// Wants two sessions of one engine, neither of them in a forward pass.
int64_t copy_prefix(Session& to, const Session& from, std::span<const int32_t> prompt);

}  // namespace forebay
