/// Elementwise functions of rows.
#pragma once

#include "kernels/context.h"
#include "tensor/view.h"

namespace forebay {

/// y = silu(gate) * up, silu(v) = v / (1 + e^-v). y may be either input.
void silu_mul(KernelContext& ctx, TensorView<const float> gate, TensorView<const float> up,
              TensorView<float> y);
/// y = x * sigmoid(gate). y may be either input.
void sigmoid_mul(KernelContext& ctx, TensorView<const float> x, TensorView<const float> gate,
                 TensorView<float> y);
/// x = silu(x * scale)
void silu_scaled(KernelContext& ctx, float scale, TensorView<float> x);
/// y += x
void add(KernelContext& ctx, TensorView<const float> x, TensorView<float> y);
/// y[t,:] += bias
void add_bias(KernelContext& ctx, const float* bias, TensorView<float> y);

/// One row of each, for tasks that already run on a pool thread.
void silu_mul_row(Isa isa, const float* gate, const float* up, int64_t n, float* y);

/// log(1 + e^x), x itself above 20.
float softplus(float x);
float sigmoid(float x);

namespace activation_detail {
void silu_mul_ref(const float* gate, const float* up, int64_t n, float* y);
void silu_mul_avx2(const float* gate, const float* up, int64_t n, float* y);
void sigmoid_mul_ref(const float* x, const float* gate, int64_t n, float* y);
void sigmoid_mul_avx2(const float* x, const float* gate, int64_t n, float* y);
void silu_scaled_ref(float scale, int64_t n, float* x);
void silu_scaled_avx2(float scale, int64_t n, float* x);
}  // namespace activation_detail

}  // namespace forebay
