#include "core/sha256.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace forebay {
namespace {

constexpr bool is_prime(uint32_t n) {
  for (uint32_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return true;
}

/// The first 32 bits of the fraction of n's cube root: floor(cbrt(n) * 2^32) mod 2^32.
constexpr uint32_t root_bits(uint32_t n) {
  uint64_t low = 0, high = uint64_t{8} << 32;  // cbrt(311) < 7
  while (high - low > 1) {
    const uint64_t middle = (low + high) / 2;
    const auto m = static_cast<unsigned __int128>(middle);
    // middle^3 <= n * 2^96, with 35 + 70 bits and more kept apart: compare middle^2 with n * 2^96 / middle.
    const bool below = m * m <= (static_cast<unsigned __int128>(n) << 96) / m;
    (below ? low : high) = middle;
  }
  return static_cast<uint32_t>(low);
}

constexpr std::array<uint32_t, 64> kRound = [] {
  std::array<uint32_t, 64> out = {};
  uint32_t prime = 2;
  for (uint32_t& value : out) {
    while (!is_prime(prime)) ++prime;
    value = root_bits(prime++);
  }
  return out;
}();
static_assert(kRound[0] == 0x428a2f98 && kRound[63] == 0xc67178f2);

}  // namespace

void Sha256Sum::block(const uint8_t* data) {
  std::array<uint32_t, 64> w;
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t{data[4 * i]} << 24 | uint32_t{data[4 * i + 1]} << 16 | uint32_t{data[4 * i + 2]} << 8 |
           data[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += added[i];
}

void Sha256Sum::add(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  size_t filled = n_bytes_ % 64;
  n_bytes_ += left;
  while (left > 0) {
    if (filled == 0 && left >= 64) {
      block(data);
      data += 64;
      left -= 64;
      continue;
    }
    const size_t n = std::min(left, 64 - filled);
    std::copy_n(data, n, pending_.begin() + static_cast<std::ptrdiff_t>(filled));
    data += n;
    left -= n;
    filled += n;
    if (filled == 64) {
      block(pending_.data());
      filled = 0;
    }
  }
}

Sha256 Sha256Sum::finish() {
  const uint64_t n_bits = n_bytes_ * 8;
  std::array<std::byte, 72> tail = {std::byte{0x80}};
  const size_t zeros = (119 - n_bytes_ % 64) % 64;  // after the 0x80, up to 8 bytes before a block's end
  for (int i = 0; i < 8; ++i) tail[1 + zeros + i] = static_cast<std::byte>(n_bits >> (56 - 8 * i));
  add(std::span(tail).first(1 + zeros + 8));
  Sha256 sum;
  for (int i = 0; i < 32; ++i) sum[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return sum;
}

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256Sum sum;
  sum.add(bytes);
  return sum.finish();
}

std::string to_hex(const Sha256& sum) {
  std::string out;
  for (const uint8_t byte : sum) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace forebay
