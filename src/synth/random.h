/// Random numbers by key and counter: number i of a key is a pure function of both, so that any thread makes
/// any part of a tensor and the bytes are the same.
#pragma once

#include <cstdint>
#include <string_view>

namespace forebay::synth {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

/// SplitMix64's finisher: every bit of x reaches every bit of the result.
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

struct Key {
  uint64_t value = 0;

  /// A key of its own for each name under this one.
  Key named(std::string_view name) const;
  Key numbered(uint64_t number) const { return {mix(value + kGolden * (number + 1)) ^ kGolden}; }

  /// 64 random bits.
  uint64_t word(uint64_t counter) const { return mix(value + kGolden * (counter + 1)); }
  /// In (0, 1).
  double uniform(uint64_t counter) const;
  /// Mean 0, deviation 1, never beyond 3.47: the sum of four uniform numbers. No outlier spoils a block.
  float normal(uint64_t counter) const {
    const uint64_t w = word(counter);
    const auto sum = static_cast<int64_t>((w & 0xffff) + (w >> 16 & 0xffff) + (w >> 32 & 0xffff) + (w >> 48));
    // Each part has mean 32767.5 and variance (2^32 - 1) / 12.
    constexpr float kScale = 2.6429e-5f;  // 1 / (2 * 18918.6)
    return static_cast<float>(sum - 131070) * kScale;
  }
};

}  // namespace forebay::synth
