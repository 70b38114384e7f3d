#pragma once

#include <cstdint>

namespace forebay::train {

/// 64 random bits as a function of what they are for: SplitMix64's mixing, once per word.
inline uint64_t draw(uint64_t seed, uint64_t a, uint64_t b) {
  const auto mix = [](uint64_t x) {
    x += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  };
  return mix(mix(mix(seed) ^ a) ^ b);
}

}  // namespace forebay::train
