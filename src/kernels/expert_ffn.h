/// The routed experts of a window in one call: every expert's rows together, its weights decoded once.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "tensor/view.h"

namespace forebay {

/// One expert and the work it has: rows[i] of x goes to slots[i] of the output.
struct ExpertCall {
  MatrixView gate, up, down;  // [F, D], [F, D], [D, F]
  std::span<const int32_t> rows;
  std::span<const int32_t> slots;
};

/// y[slot] = down( silu(gate x[row]) * (up x[row]) ) for every (row, slot) of every call.
///
/// hidden_SF, scratch_SF  one row per slot, overwritten; F is the widest call's (a shared expert may be
/// narrower or wider than the routed ones, and a dense feed-forward is one call). Slots are distinct over all
/// calls. Bits of a slot depend on its expert and row alone, and are those of matmul, silu_mul, matmul. Two
/// dispatches, whatever the number of calls; with rounded activations a row is rounded once for all experts,
/// a slot's hidden row where it is made.
void expert_ffn(KernelContext& ctx, std::span<const ExpertCall> calls, TensorView<const float> x_TD,
                TensorView<float> hidden_SF, TensorView<float> scratch_SF, TensorView<float> y_SD);

}  // namespace forebay
