#include "kernels/gated_delta.h"

#include <algorithm>

#include "core/ensure.h"

namespace forebay {
namespace {

/// Two strips: enough tasks for several threads, each long enough to be worth a call.
constexpr int kTaskColumns = 64;

gated_delta_detail::ColumnsFn columns_fn(const KernelContext& ctx) {
  return ctx.isa() == Isa::kReference ? gated_delta_detail::columns_ref : gated_delta_detail::columns_avx2;
}

}  // namespace

void gated_delta_rule(KernelContext& ctx, const GatedDeltaShape& shape, TensorView<const float> q,
                      TensorView<const float> k, TensorView<const float> v, TensorView<const float> decay,
                      TensorView<const float> beta, float* state, TensorView<float> out) {
  ENSURE(q.cols == shape.n_k_heads * shape.k_dim && k.cols == q.cols, "gated_delta key width");
  ENSURE(v.cols == shape.n_v_heads * shape.v_dim && out.cols == v.cols, "gated_delta value width");
  if (q.rows == 0) return;
  const auto columns = columns_fn(ctx);
  const int64_t scratch = int64_t{32} * shape.k_dim;
  ctx.reserve_scratch(scratch);
  const int per_head = (shape.v_dim + kTaskColumns - 1) / kTaskColumns;
  ctx.pool().parallel_for(
      int64_t{shape.n_v_heads} * per_head, 1, [&](int64_t begin, int64_t end, int thread) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t h = task / per_head;
          const int first = static_cast<int>(task % per_head) * kTaskColumns;
          const gated_delta_detail::Tokens tokens{
              .n = q.rows,
              .q_TK = q.slice_cols(shape.key_head(static_cast<int>(h)) * shape.k_dim, shape.k_dim),
              .k_TK = k.slice_cols(shape.key_head(static_cast<int>(h)) * shape.k_dim, shape.k_dim),
              .v_TV = v.slice_cols(h * shape.v_dim, shape.v_dim),
              .decay_T1 = decay.slice_cols(h, 1),
              .beta_T1 = beta.slice_cols(h, 1),
              .out_TV = out.slice_cols(h * shape.v_dim, shape.v_dim)};
          columns(tokens, shape.k_dim, shape.v_dim, first, std::min(first + kTaskColumns, shape.v_dim),
                  state + h * shape.k_dim * shape.v_dim, ctx.scratch(thread, scratch));
        }
      });
}

}  // namespace forebay
