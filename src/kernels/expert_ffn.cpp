#include "kernels/expert_ffn.h"

#include <algorithm>

#include "kernels/activation.h"
#include "kernels/matmul.h"

namespace forebay {
namespace {

/// Splits `n` outputs of every call into blocks of `block` and runs body(call, begin, end, thread) on each.
template <typename Body>
void over_blocks(KernelContext& ctx, std::span<const ExpertCall> calls, int64_t n, int64_t block, Body body) {
  const int64_t per_call = (n + block - 1) / block;
  ctx.pool().parallel_for(per_call * static_cast<int64_t>(calls.size()), 1,
                          [&](int64_t begin, int64_t end, int thread) {
                            for (int64_t task = begin; task < end; ++task) {
                              const int64_t first = task % per_call * block;
                              body(calls[task / per_call], first, std::min(n, first + block), thread);
                            }
                          });
}

}  // namespace

void expert_ffn(KernelContext& ctx, std::span<const ExpertCall> calls, TensorView<const float> x,
                TensorView<float> hidden, TensorView<float> scratch, TensorView<float> y) {
  constexpr int64_t kBlock = 32;
  if (calls.empty()) return;
  over_blocks(ctx, calls, hidden.cols, kBlock,
              [&](const ExpertCall& call, int64_t f0, int64_t f1, int thread) {
                const auto T = static_cast<int64_t>(call.rows.size());
                const RowSet<const float> from{x.data, x.stride, call.rows.data()};
                const RowSet<float> gate{hidden.data, hidden.stride, call.slots.data()};
                const RowSet<float> up{scratch.data, scratch.stride, call.slots.data()};
                matmul_task(ctx, thread, call.gate, f0, f1, from, T, gate);
                matmul_task(ctx, thread, call.up, f0, f1, from, T, up);
                for (int64_t t = 0; t < T; ++t)
                  silu_mul_row(ctx.isa(), gate.row(t) + f0, up.row(t) + f0, f1 - f0, gate.row(t) + f0);
              });
  over_blocks(ctx, calls, y.cols, kBlock, [&](const ExpertCall& call, int64_t d0, int64_t d1, int thread) {
    matmul_task(ctx, thread, call.down, d0, d1, {hidden.data, hidden.stride, call.slots.data()},
                static_cast<int64_t>(call.rows.size()), {y.data, y.stride, call.slots.data()});
  });
}

}  // namespace forebay
