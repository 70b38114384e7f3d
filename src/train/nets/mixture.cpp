#include "train/nets/mixture.h"

#include <vector>

namespace forebay::train {
namespace {

/// Choices in the order of their experts: place i of the sorted ones is choice order[i], choice j is at
/// back[j].
struct ByExpert {
  torch::Tensor experts, order, back, counts;
};

ByExpert sort_by_expert(const Routing& routing) {
  ByExpert sorted;
  const torch::Tensor flat = routing.experts.flatten();
  std::tie(sorted.experts, sorted.order) =
      torch::sort(flat, /*stable=*/true, /*dim=*/0, /*descending=*/false);
  sorted.back = torch::empty_like(sorted.order);
  sorted.back.index_copy_(0, sorted.order, torch::arange(flat.size(0), flat.options()));
  sorted.counts = torch::bincount(flat, {}, routing.probabilities.size(-1));
  return sorted;
}

/// The tokens of all choices, sorted by expert. Every choice has a copy of its own before sorting, so that
/// gradients are added up in one order.
torch::Tensor sorted_tokens(const ByExpert& sorted, const torch::Tensor& x_ND, int64_t n_used) {
  const int64_t N = x_ND.size(0), D = x_ND.size(1);
  return x_ND.unsqueeze(1).expand({N, n_used, D}).reshape({N * n_used, D}).index_select(0, sorted.order);
}

torch::Tensor combine(const ByExpert& sorted, const Routing& routing, const torch::Tensor& y_sorted) {
  const torch::Tensor y =
      y_sorted.index_select(0, sorted.back).view({routing.experts.size(0), -1, y_sorted.size(1)});
  return (y * routing.weights.unsqueeze(-1)).sum(1);
}

torch::Tensor swiglu_halves(const torch::Tensor& both) {
  const auto halves = both.chunk(2, -1);
  return torch::silu(halves[0]) * halves[1];
}

}  // namespace

MixtureWeights make_mixture_weights(ParameterMaker& maker, const std::string& name,
                                    const ModelConfig& config) {
  const FfnConfig& f = config.ffn;
  const int64_t D = config.d_model, E = f.n_experts, F = f.d_expert, S = f.d_shared;
  MixtureWeights w;
  w.router = maker.make(name + ".gate.weight", {E, D}, Init::matrix(D));
  w.gate_up = maker.make(name + ".experts.gate_up_proj", {E, 2 * F, D}, Init::matrix(D));
  w.down = maker.make(name + ".experts.down_proj", {E, D, F}, Init::into_residual(F, config.n_blocks));
  if (S == 0) return w;
  w.shared_router = maker.make(name + ".shared_expert_gate.weight", {1, D}, Init::matrix(D));
  w.shared_gate = maker.make(name + ".shared_expert.gate_proj.weight", {S, D}, Init::matrix(D));
  w.shared_up = maker.make(name + ".shared_expert.up_proj.weight", {S, D}, Init::matrix(D));
  w.shared_down =
      maker.make(name + ".shared_expert.down_proj.weight", {D, S}, Init::into_residual(S, config.n_blocks));
  return w;
}

Routing route(const torch::Tensor& router, const torch::Tensor& x_ND, int64_t n_used) {
  Routing routing;
  routing.probabilities = linear(x_ND, router, Precision::kF32).softmax(-1);
  torch::Tensor best;
  std::tie(best, routing.experts) = routing.probabilities.topk(n_used, -1);
  routing.weights = best / best.sum(-1, true);
  return routing;
}

torch::Tensor balance_loss(const Routing& routing) {
  const int64_t E = routing.probabilities.size(-1);
  const torch::Tensor counts =
      torch::bincount(routing.experts.flatten(), {}, E).to(routing.probabilities.dtype());
  const torch::Tensor share = counts / static_cast<double>(routing.experts.numel());
  return (share * routing.probabilities.mean(0)).sum() * static_cast<double>(E);
}

torch::Tensor experts_one_by_one(const MixtureWeights& w, const Routing& routing, const torch::Tensor& x_ND,
                                 Precision precision) {
  const ByExpert sorted = sort_by_expert(routing);
  const torch::Tensor counts = sorted.counts.to(torch::kCPU);
  const std::vector<int64_t> sizes(counts.data_ptr<int64_t>(), counts.data_ptr<int64_t>() + counts.numel());
  const auto tokens = sorted_tokens(sorted, x_ND, routing.experts.size(1)).split_with_sizes(sizes, 0);
  const auto gate_up = w.gate_up.unbind(0), down = w.down.unbind(0);
  std::vector<torch::Tensor> results;
  for (size_t e = 0; e < sizes.size(); ++e) {
    if (sizes[e] == 0) continue;
    // Whole tiles of the matrix product: a token's bits do not hang on how many others have its expert.
    constexpr int64_t kTile = 16;
    const int64_t padding = (kTile - sizes[e] % kTile) % kTile;
    const torch::Tensor x = torch::constant_pad_nd(tokens[e], {0, 0, 0, padding});
    results.push_back(
        linear(swiglu_halves(linear(x, gate_up[e], precision)), down[e], precision).narrow(0, 0, sizes[e]));
  }
  return combine(sorted, routing, torch::cat(results, 0));
}

torch::Tensor experts_side_by_side(const MixtureWeights& w, const Routing& routing, const torch::Tensor& x_ND,
                                   Precision precision) {
  const ByExpert sorted = sort_by_expert(routing);
  const int64_t E = w.down.size(0), most = sorted.counts.max().item<int64_t>(), D = x_ND.size(1);
  const torch::Tensor starts = sorted.counts.cumsum(0) - sorted.counts;
  const torch::Tensor in_expert =
      torch::arange(sorted.order.size(0), sorted.order.options()) - starts.index_select(0, sorted.experts);
  const torch::Tensor place = sorted.experts * most + in_expert;
  const torch::Tensor tokens = sorted_tokens(sorted, x_ND, routing.experts.size(1));
  const auto type = precision == Precision::kBF16 ? torch::kBFloat16 : x_ND.scalar_type();
  const torch::Tensor padded = torch::zeros({E * most, D}, tokens.options().dtype(type))
                                   .index_copy(0, place, tokens.to(type))
                                   .view({E, most, D});
  const auto times = [&](const torch::Tensor& x, const torch::Tensor& weight) {
    return torch::bmm(x, weight.to(type).transpose(1, 2));
  };
  const torch::Tensor y = times(swiglu_halves(times(padded, w.gate_up)), w.down).view({E * most, D});
  return combine(sorted, routing, y.index_select(0, place).to(x_ND.scalar_type()));
}

Mixture mixture_layer(const MixtureWeights& w, const ModelConfig& config, bool with_loss,
                      const torch::Tensor& x_BTD, Precision precision) {
  const torch::Tensor x = x_BTD.reshape({-1, x_BTD.size(-1)});
  const Routing routing = route(w.router, x, config.ffn.n_used);
  torch::Tensor y = x.is_cuda() ? experts_side_by_side(w, routing, x, precision)
                                : experts_one_by_one(w, routing, x, precision);
  if (config.ffn.weights_scale != 1.0f) y = y * static_cast<double>(config.ffn.weights_scale);
  if (w.shared_gate.defined())
    y = y + torch::sigmoid(linear(x, w.shared_router, precision)) *
                swiglu(x, w.shared_gate, w.shared_up, w.shared_down, precision);
  return {y.view_as(x_BTD), with_loss ? balance_loss(routing) : torch::Tensor()};
}

}  // namespace forebay::train
