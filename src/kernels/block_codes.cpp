#include "kernels/block_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/ensure.h"

namespace forebay {
namespace {

constexpr int kLevels = 63;
// Products of lengths below this stay far from the largest f32; bounds of a query above this are normal ones.
constexpr double kLongest = 1e15, kShortest = 1e-30;

/// The smallest bf16 that is not below x >= 0.
uint16_t bf16_above(double x) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x * (1 + 1e-6)));
  return static_cast<uint16_t>((bits + 0xffffu) >> 16);
}

/// What is left of rounding n values to 63 levels on each side.
struct Rounded {
  float scale = 0;
  double error = 0, length = 0;  // Euclidean norms of what is lost and of what is kept
};

/// code(i) gets the integer of x[i]. Values that are not finite, or too large: an infinite error, zeros.
template <typename PutCode>
Rounded round_to_levels(const float* x, int n, PutCode code) {
  float largest = 0;
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    squares += static_cast<double>(x[i]) * x[i];
  }
  Rounded r;
  const bool fits = squares < kLongest * kLongest;  // false for NaN
  r.scale = fits ? largest / kLevels : 0;
  const float inverse = r.scale > std::numeric_limits<float>::min() ? 1 / r.scale : 0;
  double lost = 0, kept = 0;
  for (int i = 0; i < n; ++i) {
    const int q = fits ? std::clamp(static_cast<int>(std::lrintf(x[i] * inverse)), -kLevels, kLevels) : 0;
    code(i, q);
    if (!fits) continue;
    const double near = static_cast<double>(r.scale) * q;
    lost += (x[i] - near) * (x[i] - near);
    kept += near * near;
  }
  r.error = fits ? std::sqrt(lost) : std::numeric_limits<double>::infinity();
  r.length = std::sqrt(kept);
  return r;
}

}  // namespace

void encode_blocks(const float* pooled, int64_t begin, int64_t end, const BlockCodes& to) {
  const int64_t quads = BlockCodes::quads(to.dim), n_codes = 4 * BlockCodes::kTile * quads;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t lane = b % BlockCodes::kTile;
    std::byte* tile = to.tile(b / BlockCodes::kTile);
    const auto put = [&](int d, int q) {
      tile[(d / 4 * BlockCodes::kTile + lane) * 4 + d % 4] = static_cast<std::byte>(q + 64);
    };
    const Rounded r = round_to_levels(pooled + b * to.dim, to.dim, put);
    for (int d = to.dim; d < 4 * quads; ++d) put(d, 0);
    const uint16_t error = bf16_above(r.error), length = bf16_above(r.length);
    std::byte* numbers = tile + n_codes;
    std::memcpy(numbers + 4 * lane, &r.scale, 4);
    std::memcpy(numbers + 4 * BlockCodes::kTile + 2 * lane, &error, 2);
    std::memcpy(numbers + 6 * BlockCodes::kTile + 2 * lane, &length, 2);
  }
}

void CodedQuery::reserve(int heads, int width) {
  const auto padded = static_cast<size_t>((heads + 3) / 4 * 4);
  codes.reserve(padded * 4 * static_cast<size_t>(BlockCodes::quads(width)));
  scale.reserve(padded);
  offset.reserve(padded);
}

bool encode_query(const float* q, int n_heads, int dim, CodedQuery& to) {
  ENSURE(dim <= BlockCodes::kMaxDim, "more dimensions than codes are made for");
  const int64_t quads = BlockCodes::quads(dim);
  const int padded = (n_heads + 3) / 4 * 4;
  to.n_heads = n_heads;
  to.dim = dim;
  to.codes.assign(static_cast<size_t>(padded * 4 * quads), 0);
  to.scale.assign(static_cast<size_t>(padded), 0);
  to.offset.assign(static_cast<size_t>(padded), 0);
  double lengths = 0, lost = 0;
  for (int h = 0; h < n_heads; ++h) {
    int8_t* head = to.codes.data() + h / 4 * quads * 16 + h % 4 * 4;
    int32_t sum = 0;
    const Rounded r = round_to_levels(q + static_cast<int64_t>(h) * dim, dim, [&](int d, int code) {
      head[d / 4 * 16 + d % 4] = static_cast<int8_t>(code);
      sum += code;
    });
    to.scale[h] = r.scale;
    to.offset[h] = 64 * sum;
    lengths += r.length + r.error;
    lost += r.error;
  }
  if (!(lengths > kShortest && lengths < kLongest)) return false;
  // score = sum relu(q . k). relu moves nothing further apart, so what rounding changes is at most
  //   sum |q| |k - k'| + sum |q - q'| |k'|
  // and what additions in f32 round, in any order, at most (n + ...) * 2^-24 * sum |q| |k|.
  const double rounding = (n_heads + dim + 32) * 0x1p-23;
  to.error = static_cast<float>(lengths * (1 + rounding) * (1 + 1e-6));
  to.length = static_cast<float>((lost + lengths * rounding) * (1 + 1e-6));
  return true;
}

void bound_scores(Isa isa, bool use_vnni, const CodedQuery& q, const BlockCodes& codes, int64_t begin,
                  int64_t end, float* low, float* high) {
  const auto fn = isa == Isa::kReference ? block_codes_detail::bound_ref
                  : use_vnni             ? block_codes_detail::bound_vnni
                                         : block_codes_detail::bound_avx2;
  fn(q, codes, begin, end, low, high);
}

}  // namespace forebay
