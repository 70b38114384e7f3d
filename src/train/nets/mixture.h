/// A feed-forward of many experts, of which a router picks a few per token, and one that all tokens share.
#pragma once

#include <string>

#include "model/config.h"
#include "train/nets/ops.h"
#include "train/nets/parameters.h"

namespace forebay::train {

struct MixtureWeights {
  torch::Tensor router;                               // [E, D]
  torch::Tensor gate_up;                              // [E, 2 F, D], gate rows first
  torch::Tensor down;                                 // [E, D, F]
  torch::Tensor shared_router;                        // [1, D]
  torch::Tensor shared_gate, shared_up, shared_down;  // undefined without a shared expert
};
MixtureWeights make_mixture_weights(ParameterMaker& maker, const std::string& name,
                                    const ModelConfig& config);

/// Which experts N tokens go to.
struct Routing {
  torch::Tensor experts;        // [N, n_used] int64
  torch::Tensor weights;        // [N, n_used], summing to 1
  torch::Tensor probabilities;  // [N, E], of all
};
Routing route(const torch::Tensor& router, const torch::Tensor& x_ND, int64_t n_used);
/// E sum_e (share of the choices that fell on e) (mean probability of e): 1 when all are used alike.
torch::Tensor balance_loss(const Routing& routing);

/// sum_k weights[n, k] down_e(silu(gate_e x_n) * up_e x_n), e = experts[n, k]. One expert after another: the
/// definition, and the way on the CPU.
torch::Tensor experts_one_by_one(const MixtureWeights& w, const Routing& routing, const torch::Tensor& x_ND,
                                 Precision precision);
/// The same with every expert's tokens padded to those of the busiest: three large products, for a GPU.
torch::Tensor experts_side_by_side(const MixtureWeights& w, const Routing& routing, const torch::Tensor& x_ND,
                                   Precision precision);

struct Mixture {
  torch::Tensor y;        // [B, T, D]
  torch::Tensor balance;  // undefined unless asked for
};
Mixture mixture_layer(const MixtureWeights& w, const ModelConfig& config, bool with_loss,
                      const torch::Tensor& x_BTD, Precision precision);

}  // namespace forebay::train
