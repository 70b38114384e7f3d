/// The one source of randomness on the wire: a hash of (seed, step, where, j). No generator, no state: any
/// process, device and order of calls gets the same numbers. The tensor versions are in prf_tensor.h; test
/// vectors in tests/train/wire/prf_test.cpp; written down in docs/formats/wire.md.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace forebay::train {

inline constexpr uint64_t kPrfGolden = 0x9e3779b97f4a7c15;
inline constexpr uint64_t kPrfMix1 = 0xbf58476d1ce4e5b9;
inline constexpr uint64_t kPrfMix2 = 0x94d049bb133111eb;

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64 bits.
constexpr uint64_t prf_mix(uint64_t z) {
  z = (z ^ (z >> 30)) * kPrfMix1;
  z = (z ^ (z >> 27)) * kPrfMix2;
  return z ^ (z >> 31);
}

/// The stream `key` narrowed by one more number.
constexpr uint64_t prf_absorb(uint64_t key, uint64_t value) {
  return prf_mix((key ^ value) + kPrfGolden);
}

/// What a stream is for: streams of two purposes share nothing.
enum class PrfUse : uint64_t { kMask = 1, kNoise = 2, kFrame = 3, kTest = 4, kEpoch = 5 };

/// The stream of `use` at these numbers, in order.
constexpr uint64_t prf_stream(PrfUse use, std::initializer_list<uint64_t> numbers) {
  uint64_t key = prf_absorb(0, static_cast<uint64_t>(use));
  for (const uint64_t number : numbers) key = prf_absorb(key, number);
  return key;
}

/// Element j of a stream, 64 bits.
constexpr uint64_t prf_at(uint64_t stream, uint64_t j) {
  return prf_absorb(stream, j);
}

/// In [0, 1), a multiple of 2^-24: exact in f32.
constexpr float prf_uniform(uint64_t bits) {
  return static_cast<float>(bits >> 40) * 0x1p-24f;
}

/// A standard normal number (Box and Muller), f64, from elements 2j and 2j + 1 of the stream.
double prf_normal(uint64_t stream, uint64_t j);

/// What decides whether coordinate j is among the k smallest: the upper 43 bits of its hash, then j. No two
/// are equal. j < 2^20.
inline constexpr int kPrfIndexBits = 20;
constexpr int64_t prf_rank(uint64_t bits, uint64_t j) {
  return static_cast<int64_t>((bits >> 21) << kPrfIndexBits | j);
}

/// The k coordinates of [0, width) with the smallest ranks, ascending: exactly k of them, every coordinate
/// equally often. 0 <= k <= width <= 2^20.
std::vector<int64_t> prf_exact_k(uint64_t stream, int64_t width, int64_t k);

}  // namespace forebay::train
