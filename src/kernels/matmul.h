/// Quantised matrix times activations.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace forebay {

/// y[t,n] = sum_k x[t,k] * w[n,k]
///
/// w_NK     any type with a codec, in place. x_TK, y_TN  f32; must not overlap. Any T >= 0.
/// An output's bits depend on its weight row and its x row alone: not on T, not on threads.
/// Exact activations: the reference accumulates in f64; AVX2 in one f32 vector per output, k ascending.
/// Activations::kInt8, for block formats: x is rounded once (kernels/int8_rows.h), and all versions give the
/// bits that kernels/int8_dot.h defines.
void matmul(KernelContext& ctx, const MatrixView& w_NK, TensorView<const float> x_TK, TensorView<float> y_TN);

/// Several matrices with the same input, in one dispatch: x is rounded once for all. The bits are those of
/// one matmul each.
struct MatmulOutput {
  MatrixView w;         // [N, K]
  TensorView<float> y;  // [T, N]
};
void matmul(KernelContext& ctx, std::span<const MatmulOutput> outputs, TensorView<const float> x_TK);

/// Rows of a buffer picked by index: row(t) is row index[t] of the base, or row t where index is null.
template <typename T>
struct RowSet {
  T* base = nullptr;
  int64_t stride = 0;
  const int32_t* index = nullptr;

  T* row(int64_t t) const { return base + (index != nullptr ? index[t] : t) * stride; }
};

/// One task of a matmul with exact activations on the calling thread: outputs [n0, n1) for T picked rows.
/// What grouped calls (experts) build on; the bits are those of matmul.
void matmul_task(KernelContext& ctx, int thread, const MatrixView& w_NK, int64_t n0, int64_t n1,
                 RowSet<const float> x, int64_t T, RowSet<float> y);

/// Floats of scratch that a task of a product with T rows takes, whatever its activations.
int64_t matmul_scratch(const KernelContext& ctx, const MatrixView& w, int64_t T);

namespace matmul_detail {
void task_ref(const MatrixView& w, int64_t n0, int64_t n1, RowSet<const float> x, int64_t T, RowSet<float> y,
              float* scratch);
void task_avx2(const MatrixView& w, int64_t n0, int64_t n1, RowSet<const float> x, int64_t T, RowSet<float> y,
               float* scratch);
/// Rows of w decoded at once: scratch holds this many rows of K floats.
inline constexpr int64_t kRowsPerTile = 8;
}  // namespace matmul_detail

}  // namespace forebay
