#include "train/nets/gated_delta.h"

#include <cmath>
#include <limits>
#include <vector>

#include "train/nets/causal_conv.h"

namespace forebay::train {
namespace {

/// x / |x|, with the small number inside the root.
torch::Tensor l2_norm(const torch::Tensor& x) {
  return x * (x.pow(2).sum(-1, true) + 1e-6).rsqrt();
}

}  // namespace

torch::Tensor gated_delta_by_token(const DeltaInputs& in) {
  const int64_t T = in.q.size(2);
  torch::Tensor state =
      torch::zeros({in.q.size(0), in.q.size(1), in.q.size(3), in.v.size(3)}, in.q.options());
  std::vector<torch::Tensor> out;
  for (int64_t t = 0; t < T; ++t) {
    const auto at = [&](const torch::Tensor& x) { return x.select(2, t); };
    const torch::Tensor k = at(in.k).unsqueeze(-1), q = at(in.q).unsqueeze(-1);
    state = state * at(in.log_decay).exp().unsqueeze(-1).unsqueeze(-1);
    const torch::Tensor delta = (at(in.v) - (state * k).sum(-2)) * at(in.beta).unsqueeze(-1);
    state = state + k * delta.unsqueeze(-2);
    out.push_back((state * q).sum(-2));
  }
  return torch::stack(out, 2);
}

torch::Tensor gated_delta_by_chunk(const DeltaInputs& in, int64_t chunk) {
  const int64_t B = in.q.size(0), H = in.q.size(1), T = in.q.size(2);
  const int64_t C = std::min(chunk, T), n_chunks = (T + C - 1) / C, padding = n_chunks * C - T;
  // Padding has beta 0 and no decay: it changes no memory.
  const auto rows = [&](const torch::Tensor& x) {
    const torch::Tensor whole = padding == 0 ? x : torch::constant_pad_nd(x, {0, 0, 0, padding});
    return whole.reshape({B, H, n_chunks, C, x.size(3)});
  };
  const auto numbers = [&](const torch::Tensor& x) {
    const torch::Tensor whole = padding == 0 ? x : torch::constant_pad_nd(x, {0, padding});
    return whole.reshape({B, H, n_chunks, C});
  };
  const torch::Tensor q = rows(in.q), k = rows(in.k), v = rows(in.v);
  const torch::Tensor beta = numbers(in.beta).unsqueeze(-1);
  const torch::Tensor decay = numbers(in.log_decay).cumsum(-1);  // from the chunk's start, in logarithms

  // between[i, j] = exp(decay_i - decay_j), for j <= i
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const torch::Tensor after = future_mask(C, q.device());
  const torch::Tensor between = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).masked_fill(after, kNever).exp();
  const torch::Tensor from_start = decay.exp().unsqueeze(-1);

  // (1 + A) [values | keys] = beta [v | from_start k], A strictly lower.
  const torch::Tensor k_t = k.transpose(-1, -2);
  const torch::Tensor A = (torch::matmul(k, k_t) * between * beta).tril(-1);
  const torch::Tensor right = torch::cat({v * beta, k * (beta * from_start)}, -1);
  const torch::Tensor solved =
      torch::linalg_solve_triangular(A, right, /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
  const int64_t v_dim = v.size(-1), k_dim = k.size(-1);

  const torch::Tensor whole_chunk = decay.narrow(-1, C - 1, 1);
  const auto by_chunk = [](const torch::Tensor& x) { return x.unbind(2); };
  const auto values = by_chunk(solved.narrow(-1, 0, v_dim)), keys = by_chunk(solved.narrow(-1, v_dim, k_dim));
  const auto queries = by_chunk(q * from_start), within = by_chunk(torch::matmul(q, k_t) * between);
  const auto to_end = by_chunk((k * (whole_chunk - decay).exp().unsqueeze(-1)).transpose(-1, -2));
  const auto kept = by_chunk(whole_chunk.exp().unsqueeze(-1));

  torch::Tensor state;  // [B, H, k_dim, v_dim]; undefined: empty
  std::vector<torch::Tensor> out;
  for (size_t i = 0; i < static_cast<size_t>(n_chunks); ++i) {
    torch::Tensor change = values[i];
    if (state.defined()) change = change - torch::matmul(keys[i], state);
    torch::Tensor y = torch::matmul(within[i], change);
    if (state.defined()) y = y + torch::matmul(queries[i], state);
    out.push_back(y);
    const torch::Tensor added = torch::matmul(to_end[i], change);
    state = state.defined() ? state * kept[i] + added : added;
  }
  return torch::cat(out, 2).narrow(2, 0, T);
}

DeltaWeights make_delta_weights(ParameterMaker& maker, const std::string& name, const ModelConfig& config) {
  const GatedDeltaConfig& g = config.gated_delta;
  const int64_t D = config.d_model, V = g.value_width(), n_heads = g.shape.n_v_heads;
  DeltaWeights w;
  w.qkv = maker.make(name + ".in_proj_qkv.weight", {g.conv_channels(), D}, Init::matrix(D));
  w.gate = maker.make(name + ".in_proj_z.weight", {V, D}, Init::matrix(D));
  w.alpha = maker.make(name + ".in_proj_a.weight", {n_heads, D}, Init::matrix(D));
  w.beta = maker.make(name + ".in_proj_b.weight", {n_heads, D}, Init::matrix(D));
  const double reach = 1 / std::sqrt(static_cast<double>(g.conv_kernel));
  w.conv = maker.make(name + ".conv1d.weight", {g.conv_channels(), 1, g.conv_kernel},
                      Init::uniform(-reach, reach));
  // Memories of about ten to a thousand tokens to begin with.
  w.a_log = maker.make(name + ".A_log", {n_heads}, Init::log_uniform(1, 16));
  w.dt = maker.make(name + ".dt_bias", {n_heads}, Init::log_uniform(0.001, 0.02));
  w.norm = maker.make(name + ".norm.weight", {g.shape.v_dim}, Init::constant(1));
  w.output = maker.make(name + ".out_proj.weight", {D, V}, Init::into_residual(V, config.n_blocks));
  return w;
}

torch::Tensor gated_delta_layer(const DeltaWeights& w, const ModelConfig& config, const torch::Tensor& x_BTD,
                                Precision precision) {
  const GatedDeltaConfig& g = config.gated_delta;
  const int64_t B = x_BTD.size(0), T = x_BTD.size(1), n_v = g.shape.n_v_heads, n_k = g.shape.n_k_heads;
  const torch::Tensor mixed = causal_conv_silu(linear(x_BTD, w.qkv, precision), w.conv, 1);
  const auto heads = [&](int64_t first, int64_t n_heads, int64_t dim) {
    return mixed.narrow(-1, first, n_heads * dim).reshape({B, T, n_heads, dim}).transpose(1, 2);
  };
  const auto for_values = [&](const torch::Tensor& x) { return x.repeat_interleave(n_v / n_k, 1); };
  const double scale = 1 / std::sqrt(static_cast<double>(g.shape.k_dim));
  DeltaInputs in;
  in.q = for_values(l2_norm(heads(0, n_k, g.shape.k_dim)) * scale);
  in.k = for_values(l2_norm(heads(g.key_width(), n_k, g.shape.k_dim)));
  in.v = heads(2 * int64_t{g.key_width()}, n_v, g.shape.v_dim);
  in.beta = torch::sigmoid(linear(x_BTD, w.beta, precision)).transpose(1, 2);
  in.log_decay = (-w.a_log.exp() * torch::softplus(linear(x_BTD, w.alpha, precision) + w.dt)).transpose(1, 2);
  const torch::Tensor out = rms_norm(gated_delta_by_chunk(in).transpose(1, 2), w.norm, config.rms_eps);
  const torch::Tensor z = linear(x_BTD, w.gate, precision);
  const torch::Tensor gate = g.sigmoid_gate ? torch::sigmoid(z) : torch::silu(z);
  return linear(out.reshape({B, T, -1}) * gate, w.output, precision);
}

}  // namespace forebay::train
