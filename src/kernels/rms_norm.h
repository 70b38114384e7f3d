#pragma once

#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace forebay {

/// y[r,i] = x[r,i] / sqrt(mean_i(x[r,:]^2) + eps) * weight[(r mod G) * W + i]
///
/// x_RW, y_RW  f32, may be the same buffer. `weight` holds G rows of W: one for a plain norm, one per
/// stream for grouped norms over rows that cycle through the streams.
/// The reference accumulates in f64, AVX2 in one f32 vector.
/// Source: Zhang & Sennrich 2019, arXiv:1910.07467.
void rms_norm(KernelContext& ctx, TensorView<const float> x_RW, std::span<const float> weight, float eps,
              TensorView<float> y_RW);

/// y[r,:] = x[r,:] / sqrt(sum_i x[r,i]^2 + eps) * scale
void l2_norm(KernelContext& ctx, TensorView<const float> x_RW, float eps, float scale,
             TensorView<float> y_RW);

namespace rms_norm_detail {
/// One row: y = x * (1 / sqrt(sum(x^2) * inv_n + eps)) * scale, times weight where not null.
using RowFn = void (*)(const float* x, const float* weight, int64_t n, float inv_n, float eps, float scale,
                       float* y);
void row_ref(const float* x, const float* weight, int64_t n, float inv_n, float eps, float scale, float* y);
void row_avx2(const float* x, const float* weight, int64_t n, float inv_n, float eps, float scale, float* y);
}  // namespace rms_norm_detail

}  // namespace forebay
