/// The gated delta rule: a matrix memory per head that decays, corrects itself and is read.
#pragma once

#include <string>

#include "model/config.h"
#include "train/nets/ops.h"
#include "train/nets/parameters.h"

namespace forebay::train {

/// What the rule reads: q, k [B, H, T, k_dim] (normed, q scaled), v [B, H, T, v_dim], log_decay (<= 0) and
/// beta [B, H, T].
struct DeltaInputs {
  torch::Tensor q, k, v, log_decay, beta;
};
/// The definition, a token at a time, from an empty memory S [k_dim, v_dim] per head:
///     S <- exp(log_decay) S;   S <- S + k (beta (v - S^T k))^T;   out = S^T q
torch::Tensor gated_delta_by_token(const DeltaInputs& in);
/// The same in chunks: the corrections inside a chunk are one triangular system. Source: Yang et al. 2024,
/// arXiv:2412.06464.
torch::Tensor gated_delta_by_chunk(const DeltaInputs& in, int64_t chunk = 64);

struct DeltaWeights {
  torch::Tensor qkv, gate, alpha, beta, output;
  torch::Tensor conv;   // [channels, 1, K]
  torch::Tensor a_log;  // decay exp(-e^a_log softplus(alpha + dt))
  torch::Tensor dt;
  torch::Tensor norm;  // [v_dim], around one
};
DeltaWeights make_delta_weights(ParameterMaker& maker, const std::string& name, const ModelConfig& config);

/// x [B, T, D] -> [B, T, D]. Value heads are grouped: head h reads key head h / (n_v / n_k).
torch::Tensor gated_delta_layer(const DeltaWeights& w, const ModelConfig& config, const torch::Tensor& x_BTD,
                                Precision precision);

}  // namespace forebay::train
