#include "train/wire/view_epoch.h"

#include <fmt/format.h>

#include "train/wire/prf.h"

namespace forebay::train {

ViewEpoch view_epoch(uint64_t seed, int64_t step, std::span<const Codec* const> codecs) {
  uint64_t id = prf_stream(PrfUse::kEpoch, {seed, static_cast<uint64_t>(step), codecs.size()});
  for (const Codec* codec : codecs) {
    for (const char c : codec->name()) id = prf_absorb(id, static_cast<uint8_t>(c));
    id = prf_absorb(id, codec->state_id());
  }
  return {id};
}

Result<void> check_view(ViewEpoch made, ViewEpoch used) {
  if (made == used) return {};
  return Error{Code::kInternal,
               fmt::format("log-probs of view {:016x} are used under view {:016x}: a basis or a step changed "
                           "between the two passes",
                           made.id, used.id)};
}

}  // namespace forebay::train
