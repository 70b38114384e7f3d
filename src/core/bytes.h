/// What our own file formats are made of: little-endian numbers and a checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace forebay {

// Little-endian whatever the machine.
template <typename T>
void put_le(std::vector<std::byte>& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}
template <typename T>
T get_le(std::span<const std::byte> bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(bytes[at + i]) << (8 * i);
  return value;
}

inline constexpr uint64_t kChecksumSeed = 0xcbf29ce484222325;
/// FNV-1a, 64 bits; goes on from `seed`. For accidents, not for malice.
uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed = kChecksumSeed);

}  // namespace forebay
