#include "kernels/rope.h"

#include <cmath>

#include "core/ensure.h"

namespace forebay {

void RopeTable::fill(std::span<const int64_t> positions, int n_rot_, double theta) {
  n_rot = n_rot_;
  const int half = n_rot / 2;
  cos.resize(positions.size() * half);
  sin.resize(positions.size() * half);
  for (int i = 0; i < half; ++i) {
    const double frequency = std::pow(theta, -2.0 * i / n_rot);
    for (size_t t = 0; t < positions.size(); ++t) {
      const double angle = static_cast<double>(positions[t]) * frequency;
      cos[t * half + i] = static_cast<float>(std::cos(angle));
      sin[t * half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void apply_rope_row(const float* cos, const float* sin, int n_rot, RopePairs pairs, float* x) {
  const int half = n_rot / 2;
  for (int i = 0; i < half; ++i) {
    float& a = pairs == RopePairs::kHalves ? x[i] : x[2 * i];
    float& b = pairs == RopePairs::kHalves ? x[i + half] : x[2 * i + 1];
    const float rotated_a = a * cos[i] - b * sin[i];
    b = b * cos[i] + a * sin[i];
    a = rotated_a;
  }
}

void apply_rope(KernelContext& ctx, const RopeTable& table, RopePairs pairs, int n_heads, int head_dim,
                TensorView<float> x) {
  ENSURE(x.cols == static_cast<int64_t>(n_heads) * head_dim && table.n_rot <= head_dim, "apply_rope shapes");
  const int half = table.n_rot / 2;
  ctx.pool().parallel_for(x.rows, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      for (int h = 0; h < n_heads; ++h)
        apply_rope_row(&table.cos[t * half], &table.sin[t * half], table.n_rot, pairs,
                       x.row(t) + h * head_dim);
  });
}

}  // namespace forebay
