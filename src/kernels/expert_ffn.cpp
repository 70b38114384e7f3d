#include "kernels/expert_ffn.h"

#include <algorithm>

#include "core/ensure.h"
#include "kernels/activation.h"
#include "kernels/int8_matmul.h"
#include "kernels/matmul.h"

namespace forebay {
namespace {

/// Outputs of a task: whole panels, and whole blocks of the rounded rows, so that a task rounds what it
/// wrote. A task packs the rows that it multiplies: where they are many, it should do more with that.
int64_t block_of(std::span<const ExpertCall> calls) {
  size_t n_rows = 0;
  for (const ExpertCall& call : calls) n_rows += call.rows.size();
  return n_rows < 8 * calls.size() ? 64 : 256;
}

/// Splits the outputs of every call into blocks and runs body(call, begin, end, thread) on each.
template <typename Rows, typename Body>
void over_blocks(KernelContext& ctx, std::span<const ExpertCall> calls, Rows rows_of, Body body) {
  const int64_t block = block_of(calls);
  int64_t per_call = 0;  // of the widest call; narrower ones have blocks with nothing in them
  for (const ExpertCall& call : calls) per_call = std::max(per_call, (rows_of(call) + block - 1) / block);
  ctx.pool().parallel_for(per_call * static_cast<int64_t>(calls.size()), 1,
                          [&](int64_t begin, int64_t end, int thread) {
                            for (int64_t task = begin; task < end; ++task) {
                              const ExpertCall& call = calls[task / per_call];
                              const int64_t first = task % per_call * block;
                              const int64_t last = std::min(rows_of(call), first + block);
                              if (first < last) body(call, first, last, thread);
                            }
                          });
}

}  // namespace

void expert_ffn(KernelContext& ctx, std::span<const ExpertCall> calls, TensorView<const float> x,
                TensorView<float> hidden, TensorView<float> scratch, TensorView<float> y) {
  if (calls.empty()) return;
  bool round_x = false, round_hidden = false;
  int64_t most_scratch = 0;
  for (const ExpertCall& call : calls) {
    ENSURE(call.gate.n_cols == x.cols && call.up.n_rows == call.gate.n_rows &&
               call.gate.n_rows <= hidden.cols && call.down.n_cols == call.gate.n_rows &&
               call.down.n_rows == y.cols,
           "expert_ffn shapes");
    round_x = round_x || reads_int8(ctx, call.gate.type) || reads_int8(ctx, call.up.type);
    round_hidden = round_hidden || reads_int8(ctx, call.down.type);
    for (const MatrixView* w : {&call.gate, &call.up, &call.down})
      most_scratch = std::max(most_scratch, matmul_scratch(ctx, *w, static_cast<int64_t>(call.rows.size())));
  }
  ctx.reserve_scratch(most_scratch);
  Int8Rows& inputs = ctx.int8_inputs();
  Int8Rows& rounded = ctx.int8_hidden();
  if (round_x) round_rows(ctx, x, inputs);
  if (round_hidden) rounded.resize(hidden.rows, hidden.cols);

  const auto product = [&](const MatrixView& w, const ExpertCall& call, int64_t f0, int64_t f1, int thread,
                           RowSet<float> to) {
    const auto T = static_cast<int64_t>(call.rows.size());
    if (reads_int8(ctx, w.type))
      int8_task(ctx, thread, w, f0, f1, inputs, call.rows.data(), T, to);
    else
      matmul_task(ctx, thread, w, f0, f1, {x.data, x.stride, call.rows.data()}, T, to);
  };
  over_blocks(
      ctx, calls, [](const ExpertCall& call) { return call.gate.n_rows; },
      [&](const ExpertCall& call, int64_t f0, int64_t f1, int thread) {
        const RowSet<float> gate{hidden.data, hidden.stride, call.slots.data()};
        const RowSet<float> up{scratch.data, scratch.stride, call.slots.data()};
        product(call.gate, call, f0, f1, thread, gate);
        product(call.up, call, f0, f1, thread, up);
        const bool round = reads_int8(ctx, call.down.type);
        for (size_t t = 0; t < call.slots.size(); ++t) {
          float* to = gate.row(static_cast<int64_t>(t));
          silu_mul_row(ctx.isa(), to + f0, up.row(static_cast<int64_t>(t)) + f0, f1 - f0, to + f0);
          if (round) round_to_int8(ctx.isa(), to, f0, f1, rounded.row(call.slots[t]));
        }
      });
  over_blocks(
      ctx, calls, [](const ExpertCall& call) { return call.down.n_rows; },
      [&](const ExpertCall& call, int64_t d0, int64_t d1, int thread) {
        const auto T = static_cast<int64_t>(call.slots.size());
        const RowSet<float> to{y.data, y.stride, call.slots.data()};
        if (reads_int8(ctx, call.down.type))
          int8_task(ctx, thread, call.down, d0, d1, rounded, call.slots.data(), T, to);
        else
          matmul_task(ctx, thread, call.down, d0, d1, {hidden.data, hidden.stride, call.slots.data()}, T, to);
      });
}

}  // namespace forebay
