#include "kernels/int8_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forebay {

void round_to_int8(Isa isa, const float* x, int64_t begin, int64_t end, const Int8Row& out) {
  if (isa == Isa::kReference)
    int8_detail::round_ref(x, begin, end, out);
  else
    int8_detail::round_avx2(x, begin, end, out);
}

namespace int8_detail {
namespace {

void round_run(const float* x, int64_t j, const Int8Row& out) {
  float largest = 0;
  bool finite = true;
  for (int i = 0; i < 32; ++i) {
    finite = finite && std::isfinite(x[i]);
    largest = std::max(largest, std::fabs(x[i]));
  }
  const bool zeros = !finite || largest < kNegligible;
  if (!finite)
    out.scale[j] = std::numeric_limits<float>::quiet_NaN();
  else
    out.scale[j] = zeros ? 0.0f : largest / 127.0f;
  const float inverse = zeros ? 0.0f : 127.0f / largest;
  out.sum[j] = 0;
  for (int h = 0; h < 2; ++h) {
    int32_t sum = 0;
    for (int i = 16 * h; i < 16 * h + 16; ++i) {
      const auto q = static_cast<int8_t>(zeros ? 0.0f : std::nearbyint(x[i] * inverse));
      out.q[32 * j + i] = q;
      sum += q;
    }
    out.half_sum[2 * j + h] = sum;
    out.half_value_sum[2 * j + h] = out.scale[j] * static_cast<float>(sum);
    out.sum[j] += sum;
  }
  out.value_sum[j] = out.scale[j] * static_cast<float>(out.sum[j]);
}

}  // namespace

void round_ref(const float* x, int64_t begin, int64_t end, const Int8Row& out) {
  for (int64_t i = begin; i < end; i += 32) round_run(x + i, i / 32, out);
  for (int64_t i = begin; i + 64 <= end; i += 64)
    for (int t = 0; t < 4; ++t)
      for (int m = 0; m < 16; ++m) out.planes[i + 16 * t + m] = out.q[i + 4 * m + t];
}

}  // namespace int8_detail

}  // namespace forebay
