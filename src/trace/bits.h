/// Numbers of any width, packed from each byte's lowest bit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace forebay {

class BitWriter {
 public:
  /// The lowest `n_bits` of `value`, at most 32.
  void put(uint32_t value, int n_bits) {
    pending_ |= (value & ((1ull << n_bits) - 1)) << n_pending_;
    for (n_pending_ += n_bits; n_pending_ >= 8; n_pending_ -= 8, pending_ >>= 8)
      bytes_.push_back(static_cast<std::byte>(pending_));
  }
  /// Fills the last byte with zeros. The bytes are valid until clear().
  std::span<const std::byte> finish() {
    if (n_pending_ > 0) put(0, 8 - n_pending_);
    return bytes_;
  }
  void clear() { bytes_.clear(); }
  size_t n_bytes() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
  uint64_t pending_ = 0;
  int n_pending_ = 0;
};

/// Reading past the end gives zeros and is remembered.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes = {}) : bytes_(bytes) {}

  uint32_t take(int n_bits) {
    while (n_pending_ < n_bits) {
      if (at_ < bytes_.size())
        pending_ |= static_cast<uint64_t>(bytes_[at_++]) << n_pending_;
      else
        overrun_ = true;
      n_pending_ += 8;
    }
    const auto value = static_cast<uint32_t>(pending_ & ((1ull << n_bits) - 1));
    pending_ >>= n_bits;
    n_pending_ -= n_bits;
    return value;
  }
  bool overrun() const { return overrun_; }
  /// Nothing is left but the last byte's zeros.
  bool at_end() const { return !overrun_ && at_ == bytes_.size() && n_pending_ < 8 && pending_ == 0; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  uint64_t pending_ = 0;
  int n_pending_ = 0;
  bool overrun_ = false;
};

// Rice code: value >> shift in unary, then `shift` bits; long runs give way to the plain 16 bits.
constexpr int kMaxUnary = 20;

inline void put_rice(BitWriter& out, uint16_t value, int shift) {
  const uint32_t quotient = value >> shift;
  if (quotient >= kMaxUnary) {
    out.put((1u << kMaxUnary) - 1, kMaxUnary);
    out.put(value, 16);
    return;
  }
  out.put((1u << quotient) - 1, static_cast<int>(quotient) + 1);
  out.put(value, shift);
}

inline uint16_t take_rice(BitReader& in, int shift) {
  uint32_t quotient = 0;
  while (quotient < kMaxUnary && in.take(1) == 1) ++quotient;
  if (quotient == kMaxUnary) return static_cast<uint16_t>(in.take(16));
  return static_cast<uint16_t>(quotient << shift | in.take(shift));
}

}  // namespace forebay
