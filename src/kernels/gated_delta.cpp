#include "kernels/gated_delta.h"

#include "core/ensure.h"

namespace forebay {

void gated_delta_rule(KernelContext& ctx, const GatedDeltaShape& shape, TensorView<const float> q,
                      TensorView<const float> k, TensorView<const float> v, TensorView<const float> decay,
                      TensorView<const float> beta, float* state, TensorView<float> out) {
  ENSURE(q.cols == shape.n_k_heads * shape.k_dim && k.cols == q.cols, "gated_delta key width");
  ENSURE(v.cols == shape.n_v_heads * shape.v_dim && out.cols == v.cols, "gated_delta value width");
  const auto step =
      ctx.isa() == Isa::kReference ? gated_delta_detail::step_ref : gated_delta_detail::step_avx2;
  ctx.pool().parallel_for(shape.n_v_heads, 1, [&](int64_t begin, int64_t end, int thread) {
    float* delta = ctx.scratch(thread, shape.v_dim);
    for (int64_t h = begin; h < end; ++h) {
      const int64_t kh = shape.key_head(static_cast<int>(h)) * shape.k_dim;
      for (int64_t t = 0; t < q.rows; ++t)
        step(shape.k_dim, shape.v_dim, q.row(t) + kh, k.row(t) + kh, v.row(t) + h * shape.v_dim,
             decay.row(t)[h], beta.row(t)[h], state + h * shape.k_dim * shape.v_dim, delta,
             out.row(t) + h * shape.v_dim);
    }
  });
}

}  // namespace forebay
