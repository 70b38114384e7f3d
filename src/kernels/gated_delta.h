/// The gated delta rule: a matrix memory per head that decays, corrects itself and is read.
#pragma once

#include <cstdint>

#include "kernels/context.h"
#include "tensor/view.h"

namespace forebay {

/// Which key head a value head reads. Files of qwen3next keep the checkpoint's order, the others tile.
enum class HeadPairing { kTiled /* h mod n_k */, kGrouped /* h / (n_v / n_k) */ };

struct GatedDeltaShape {
  int n_k_heads = 0;
  int n_v_heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  HeadPairing pairing = HeadPairing::kTiled;

  int key_head(int v_head) const {
    return pairing == HeadPairing::kTiled ? v_head % n_k_heads : v_head / (n_v_heads / n_k_heads);
  }
};

/// For each token in order and each value head h with key head kh, state S_h [k_dim][v_dim]:
///     S <- decay[t,h] * S;   d = beta[t,h] * (v - S^T k);   S <- S + k d^T;   out[t,h] = S^T q
///
/// q_TK, k_TK  [T][n_k_heads * k_dim], already L2-normalised (q also scaled). v_TV, out_TV  [T][n_v_heads *
/// v_dim]. decay_TH, beta_TH  [T][n_v_heads]. state  [n_v_heads][k_dim][v_dim] f32, updated in place. Heads
/// run in parallel, tokens in order: bits do not depend on how tokens are split into calls. Source: Yang et
/// al. 2024, arXiv:2412.06464.
void gated_delta_rule(KernelContext& ctx, const GatedDeltaShape& shape, TensorView<const float> q_TK,
                      TensorView<const float> k_TK, TensorView<const float> v_TV,
                      TensorView<const float> decay_TH, TensorView<const float> beta_TH, float* state,
                      TensorView<float> out_TV);

namespace gated_delta_detail {
/// What one value head reads and writes, token by token.
struct Tokens {
  int64_t n = 0;
  TensorView<const float> q_TK = {}, k_TK = {}, v_TV = {}, decay_T1 = {}, beta_T1 = {};
  TensorView<float> out_TV = {};

  const float* q(int64_t t) const { return q_TK.row(t); }
  const float* k(int64_t t) const { return k_TK.row(t); }
  const float* v(int64_t t) const { return v_TV.row(t); }
  float decay(int64_t t) const { return *decay_T1.row(t); }
  float beta(int64_t t) const { return *beta_T1.row(t); }
  float* out(int64_t t) const { return out_TV.row(t); }
};

/// Columns [first, end) of one head's state [k_dim][v_dim], through all tokens (at least one). `scratch`
/// holds 32 * k_dim floats.
using ColumnsFn = void (*)(const Tokens& tokens, int k_dim, int v_dim, int first, int end, float* state,
                           float* scratch);
void columns_ref(const Tokens& tokens, int k_dim, int v_dim, int first, int end, float* state,
                 float* scratch);
void columns_avx2(const Tokens& tokens, int k_dim, int v_dim, int first, int end, float* state,
                  float* scratch);
}  // namespace gated_delta_detail

}  // namespace forebay
