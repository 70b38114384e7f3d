#include "kernels/activation.h"

#include <algorithm>
#include <cmath>

#include "core/ensure.h"

namespace forebay {
namespace {

template <typename Body>
void over_rows(KernelContext& ctx, int64_t rows, int64_t cols, Body body) {
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(cols, 1));
  ctx.pool().parallel_for(rows, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

}  // namespace

void silu_mul_row(Isa isa, const float* gate, const float* up, int64_t n, float* y) {
  if (isa == Isa::kReference)
    activation_detail::silu_mul_ref(gate, up, n, y);
  else
    activation_detail::silu_mul_avx2(gate, up, n, y);
}

void silu_mul(KernelContext& ctx, TensorView<const float> gate, TensorView<const float> up,
              TensorView<float> y) {
  ENSURE(gate.rows == y.rows && up.rows == y.rows && gate.cols == y.cols && up.cols == y.cols,
         "silu_mul shapes");
  over_rows(ctx, y.rows, y.cols,
            [&](int64_t r) { silu_mul_row(ctx.isa(), gate.row(r), up.row(r), y.cols, y.row(r)); });
}

void sigmoid_mul(KernelContext& ctx, TensorView<const float> x, TensorView<const float> gate,
                 TensorView<float> y) {
  ENSURE(gate.rows == y.rows && x.rows == y.rows && gate.cols == y.cols && x.cols == y.cols,
         "sigmoid_mul shapes");
  const auto fn =
      ctx.isa() == Isa::kReference ? activation_detail::sigmoid_mul_ref : activation_detail::sigmoid_mul_avx2;
  over_rows(ctx, y.rows, y.cols, [&](int64_t r) { fn(x.row(r), gate.row(r), y.cols, y.row(r)); });
}

void silu_scaled(KernelContext& ctx, float scale, TensorView<float> x) {
  const auto fn =
      ctx.isa() == Isa::kReference ? activation_detail::silu_scaled_ref : activation_detail::silu_scaled_avx2;
  over_rows(ctx, x.rows, x.cols, [&](int64_t r) { fn(scale, x.cols, x.row(r)); });
}

void add(KernelContext& ctx, TensorView<const float> x, TensorView<float> y) {
  ENSURE(x.rows == y.rows && x.cols == y.cols, "add shapes");
  over_rows(ctx, y.rows, y.cols, [&](int64_t r) {
    const float* from = x.row(r);
    float* to = y.row(r);
    for (int64_t i = 0; i < y.cols; ++i) to[i] += from[i];
  });
}

void add_bias(KernelContext& ctx, const float* bias, TensorView<float> y) {
  over_rows(ctx, y.rows, y.cols, [&](int64_t r) {
    float* to = y.row(r);
    for (int64_t i = 0; i < y.cols; ++i) to[i] += bias[i];
  });
}

float softplus(float x) {
  return x > 20.0f ? x : std::log1p(std::exp(x));
}
float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}

}  // namespace forebay
