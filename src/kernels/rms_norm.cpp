#include "kernels/rms_norm.h"

#include <algorithm>

#include "core/ensure.h"

namespace forebay {
namespace {

rms_norm_detail::RowFn row_fn(Isa isa) {
  return isa == Isa::kReference ? rms_norm_detail::row_ref : rms_norm_detail::row_avx2;
}

int64_t grain_of(int64_t cols) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(cols, 1));
}

}  // namespace

void rms_norm(KernelContext& ctx, TensorView<const float> x, std::span<const float> weight, float eps,
              TensorView<float> y) {
  const int64_t W = x.cols;
  ENSURE(y.rows == x.rows && y.cols == W, "rms_norm shapes");
  ENSURE(W > 0 && weight.size() % W == 0 && !weight.empty(), "rms_norm weight width");
  const int64_t groups = static_cast<int64_t>(weight.size()) / W;
  const auto fn = row_fn(ctx.isa());
  ctx.pool().parallel_for(x.rows, grain_of(W), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r)
      fn(x.row(r), weight.data() + r % groups * W, W, 1.0f / static_cast<float>(W), eps, 1.0f, y.row(r));
  });
}

void l2_norm(KernelContext& ctx, TensorView<const float> x, float eps, float scale, TensorView<float> y) {
  ENSURE(y.rows == x.rows && y.cols == x.cols, "l2_norm shapes");
  const auto fn = row_fn(ctx.isa());
  ctx.pool().parallel_for(x.rows, grain_of(x.cols), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) fn(x.row(r), nullptr, x.cols, 1.0f, eps, scale, y.row(r));
  });
}

}  // namespace forebay
