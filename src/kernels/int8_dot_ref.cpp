#include <cmath>

#include "core/ensure.h"
#include "kernels/int8_dot.h"
#include "kernels/int8_formats.h"

namespace forebay::int8_detail {

float dot_ref(const MatrixView& w, int64_t n, const Int8Row& x) {
  const Int8Format* format = find_int8_format(w.type);
  ENSURE(format != nullptr, "an integer dot product of a type that has none");
  const DTypeInfo& layout = info(w.type);
  const int64_t runs_per_block = layout.block_weights / 32;
  const auto* row = reinterpret_cast<const uint8_t*>(w.row(n));
  float acc = 0;
  for (int64_t j = 0; j < w.n_cols / 32; ++j) {
    WeightRun run;
    format->unpack(row + j / runs_per_block * layout.block_bytes, static_cast<int>(j % runs_per_block), run);
    int32_t half_sum[2] = {0, 0};
    for (int i = 0; i < 32; ++i) half_sum[i / 16] += run.code[i] * x.q[32 * j + i];
    if (format->halves) {
      for (int h = 0; h < 2; ++h) {
        acc = std::fma(static_cast<float>(half_sum[h]), run.scale[h] * x.scale[j], acc);
        if (format->has_minima) acc = std::fma(run.minimum[h], x.half_value_sum[2 * j + h], acc);
      }
    } else {
      acc = std::fma(static_cast<float>(half_sum[0] + half_sum[1]), run.scale[0] * x.scale[j], acc);
      if (format->has_minima) acc = std::fma(run.minimum[0], x.value_sum[j], acc);
    }
  }
  return acc;
}

}  // namespace forebay::int8_detail
