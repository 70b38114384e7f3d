/// SHA-256 (FIPS 180-4), for what must be told apart whoever made it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace forebay {

using Sha256 = std::array<uint8_t, 32>;

/// Confined. add() any number of times, then finish() once.
class Sha256Sum {
 public:
  void add(std::span<const std::byte> bytes);
  Sha256 finish();

 private:
  void block(const uint8_t* data);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  uint64_t n_bytes_ = 0;
};

Sha256 sha256(std::span<const std::byte> bytes);
/// 64 digits.
std::string to_hex(const Sha256& sum);

}  // namespace forebay
