/// Private to this folder: products with rounded activations, one task at a time.
#pragma once

#include <cstdint>

#include "kernels/context.h"
#include "kernels/matmul.h"
#include "tensor/view.h"

namespace forebay {

/// Whether products with matrices of this type read rounded activations in this context.
bool reads_int8(const KernelContext& ctx, DType type);

/// Rounds all of x to rows of `out`.
void round_rows(KernelContext& ctx, TensorView<const float> x, Int8Rows& out);

/// Floats of scratch that an int8_task with T rows takes.
int64_t int8_scratch(const KernelContext& ctx, const MatrixView& w, int64_t T);

/// matmul_task for rounded rows: row t of x is index[t], or t where index is null. The type must be one that
/// reads_int8.
void int8_task(KernelContext& ctx, int thread, const MatrixView& w, int64_t n0, int64_t n1, const Int8Rows& x,
               const int32_t* index, int64_t T, RowSet<float> y);

}  // namespace forebay
