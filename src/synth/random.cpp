#include "synth/random.h"

namespace forebay::synth {

Key Key::named(std::string_view name) const {
  // FNV-1a, started from the key.
  uint64_t hash = 0xcbf29ce484222325 ^ mix(value + kGolden);
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return {mix(hash)};
}

double Key::uniform(uint64_t counter) const {
  return (static_cast<double>(word(counter) >> 11) + 0.5) * 0x1p-53;
}

}  // namespace forebay::synth
