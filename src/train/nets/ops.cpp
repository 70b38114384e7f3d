#include "train/nets/ops.h"

#include <cmath>
#include <limits>
#include <vector>

namespace forebay::train {
namespace {

using torch::indexing::Ellipsis;
using torch::indexing::Slice;

/// One node in the graph instead of five, and a third of the time.
class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight, double eps) {
    const torch::Tensor scale = (x.pow(2).mean(-1, true) + eps).rsqrt_();
    const torch::Tensor normed = x * scale;
    context->save_for_backward({normed, scale, weight});
    return normed * weight;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor &normed = saved[0], &scale = saved[1], &weight = saved[2], &gradient = gradients[0];
    const torch::Tensor for_weight =
        (gradient * normed).flatten(0, std::max<int64_t>(0, gradient.dim() - 1 - weight.dim())).sum(0);
    const torch::Tensor inner = gradient * weight;
    const torch::Tensor for_x = (inner - normed * (inner * normed).mean(-1, true)).mul_(scale);
    return {for_x, for_weight.reshape(weight.sizes()), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, Precision precision,
                     const torch::Tensor& bias) {
  if (precision == Precision::kBF16) {
    torch::Tensor y = torch::matmul(x.to(torch::kBFloat16), weight.to(torch::kBFloat16).t());
    y = y.to(torch::kFloat32);
    return bias.defined() ? y + bias : y;
  }
  return bias.defined() ? torch::linear(x, weight, bias) : torch::linear(x, weight);
}

torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps) {
  return RmsNorm::apply(x, weight, eps);
}

Rotation make_rotation(int64_t n_positions, int64_t stride, int64_t n_rot, double theta,
                       const torch::Device& device) {
  const int64_t half = n_rot / 2;
  torch::Tensor cos = torch::empty({n_positions, half}), sin = torch::empty({n_positions, half});
  auto* c = cos.data_ptr<float>();
  auto* s = sin.data_ptr<float>();
  for (int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(n_rot));
    for (int64_t t = 0; t < n_positions; ++t) {
      const double angle = static_cast<double>(t * stride) * frequency;
      c[t * half + i] = static_cast<float>(std::cos(angle));
      s[t * half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return {cos.to(device), sin.to(device)};
}

torch::Tensor rotate(const torch::Tensor& x, const Rotation& rotation) {
  const int64_t half = rotation.cos.size(1), d = x.size(-1);
  const torch::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  std::vector<torch::Tensor> parts{a * rotation.cos - b * rotation.sin, b * rotation.cos + a * rotation.sin};
  if (d > 2 * half) parts.push_back(x.narrow(-1, 2 * half, d - 2 * half));
  return torch::cat(parts, -1);
}

torch::Tensor future_mask(int64_t n_tokens, const torch::Device& device) {
  return torch::ones({n_tokens, n_tokens}, torch::TensorOptions().dtype(torch::kBool).device(device)).triu(1);
}

torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, double scale,
                     Precision precision, const torch::Tensor& hidden, torch::Tensor* probabilities) {
  const int64_t B = q.size(0), H = q.size(1), T = q.size(2), d = q.size(3), n_kv = k.size(1);
  const auto type = precision == Precision::kBF16 ? torch::kBFloat16 : q.scalar_type();
#if TORCH_VERSION_MAJOR >= 2
  // One kernel that keeps no matrix of T x T.
  if (q.is_cuda() && !hidden.defined() && probabilities == nullptr) {
    const auto whole = [&](const torch::Tensor& x) {
      return (x.size(1) == H ? x : x.repeat_interleave(H / n_kv, 1)).to(type);
    };
    return at::scaled_dot_product_attention(whole(q), whole(k), whole(v), {}, 0.0, /*is_causal=*/true, scale)
        .to(torch::kFloat32);
  }
#endif
  // Query heads of one key head side by side: no copies of keys.
  const torch::Tensor grouped = (q * scale).reshape({B, n_kv, H / n_kv * T, d}).to(type);
  const torch::Tensor scores =
      torch::matmul(grouped, k.transpose(-1, -2).to(type)).view({B, H, T, T}).to(q.scalar_type());
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  torch::Tensor mask = future_mask(T, q.device());
  if (hidden.defined()) mask = hidden.logical_or(mask);
  const torch::Tensor p = scores.masked_fill(mask, kNever).softmax(-1);
  if (probabilities != nullptr) *probabilities = p;
  return torch::matmul(p.view({B, n_kv, H / n_kv * T, T}).to(type), v.to(type))
      .view({B, H, T, d})
      .to(q.scalar_type());
}

torch::Tensor swiglu(const torch::Tensor& x, const torch::Tensor& gate, const torch::Tensor& up,
                     const torch::Tensor& down, Precision precision) {
  return linear(torch::silu(linear(x, gate, precision)) * linear(x, up, precision), down, precision);
}

torch::Tensor log_probs(const torch::Tensor& logits, const torch::Tensor& ids) {
  const torch::Tensor chosen = logits.gather(-1, ids.unsqueeze(-1)).squeeze(-1);
  return chosen - logits.logsumexp(-1);
}

}  // namespace forebay::train
