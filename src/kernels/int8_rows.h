/// Activations rounded to 8 bits, one scale for each run of 32: what integer dot products read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "kernels/isa.h"

namespace forebay {

/// A view of one rounded row. K is a multiple of 32; j counts runs of 32, h their halves.
///
/// scale[j] = m / 127 and q[i] = x[i] * (127 / m) to the nearest integer, ties to even, m the largest |x| of
/// run j. A run with m < 1e-30 has scale 0 and zeros; one that holds an infinity or NaN has scale NaN and
/// zeros, so that every output it goes into is NaN.
struct Int8Row {
  int8_t* q;
  int8_t* planes;     // q again, for whole blocks of 64: values i = t mod 4 of a block as its t-th 16 bytes
  float* scale;       // [K/32]
  int32_t* sum;       // [K/32] of q over run j
  int32_t* half_sum;  // [K/16]
  float* value_sum;   // [K/32] scale[j] * sum[j]
  float* half_value_sum;  // [K/16] scale[h/2] * half_sum[h]

  Int8Row(std::byte* base, int64_t K)
      : q(reinterpret_cast<int8_t*>(base)),
        planes(q + K),
        scale(reinterpret_cast<float*>(planes + K)),
        sum(reinterpret_cast<int32_t*>(scale + K / 32)),
        half_sum(sum + K / 32),
        value_sum(reinterpret_cast<float*>(half_sum + K / 16)),
        half_value_sum(value_sum + K / 32) {}

  static int64_t bytes(int64_t K) { return (2 * K + K / 32 * 28 + 63) / 64 * 64; }
};

/// Rounded rows of one matrix of activations. Grows, never shrinks. Confined; rows may be written from many
/// threads.
class Int8Rows {
 public:
  /// Contents are undefined after.
  void resize(int64_t n_rows, int64_t K) {
    K_ = K;
    const int64_t bytes = n_rows * Int8Row::bytes(K);
    if (bytes <= capacity_) return;
    data_.reset(static_cast<std::byte*>(::operator new (static_cast<size_t>(bytes), std::align_val_t{64})));
    capacity_ = bytes;
  }
  Int8Row row(int64_t r) const { return {data_.get() + r * Int8Row::bytes(K_), K_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> data_;
  int64_t capacity_ = 0;
  int64_t K_ = 0;
};

/// Rounds values [begin, end) of a row of K; both are multiples of 32, of 64 where planes will be read. The
/// same bits for every isa.
void round_to_int8(Isa isa, const float* x, int64_t begin, int64_t end, const Int8Row& out);

namespace int8_detail {
inline constexpr float kNegligible = 1e-30f;
void round_ref(const float* x, int64_t begin, int64_t end, const Int8Row& out);
void round_avx2(const float* x, int64_t begin, int64_t end, const Int8Row& out);
}  // namespace int8_detail

}  // namespace forebay
