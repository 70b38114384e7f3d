#include "train/nets/dense_net.h"

#include <cmath>

#include <fmt/format.h>

#include "core/ensure.h"
#include "train/nets/parameters.h"

namespace forebay::train {

DenseNet::DenseNet(const ModelConfig& config, const StageSpan& span, std::optional<uint64_t> seed)
    : Net(config, span) {
  ParameterMaker maker(*this, seed);
  const int64_t D = config.d_model, V = config.n_vocab, F = config.ffn.d_ffn;
  const AttentionConfig& a = config.attention;
  const int64_t q = int64_t{a.shape.n_heads} * a.shape.head_dim,
                kv = int64_t{a.shape.n_kv_heads} * a.shape.head_dim;
  if (span.has_embedding || (span.has_head && config.tied_embeddings))
    embedding_ = maker.make("model.embed_tokens.weight", {V, D}, Init::matrix(D));
  for (int64_t i = span.first_block; i < span.last_block; ++i) {
    const auto make = [&](const char* name, std::vector<int64_t> shape, const Init& init) {
      return maker.make(fmt::format("model.layers.{}.{}", i, name), std::move(shape), init);
    };
    Block b;
    b.mixer_norm = make("input_layernorm.weight", {D}, Init::constant(1));
    b.q = make("self_attn.q_proj.weight", {q, D}, Init::matrix(D));
    b.k = make("self_attn.k_proj.weight", {kv, D}, Init::matrix(D));
    b.v = make("self_attn.v_proj.weight", {kv, D}, Init::matrix(D));
    b.output = make("self_attn.o_proj.weight", {D, q}, Init::into_residual(q, config.n_blocks));
    if (a.bias) {
      b.q_bias = make("self_attn.q_proj.bias", {q}, Init::constant(0));
      b.k_bias = make("self_attn.k_proj.bias", {kv}, Init::constant(0));
      b.v_bias = make("self_attn.v_proj.bias", {kv}, Init::constant(0));
    }
    if (a.qk_norm) {
      b.q_norm = make("self_attn.q_norm.weight", {a.shape.head_dim}, Init::constant(1));
      b.k_norm = make("self_attn.k_norm.weight", {a.shape.head_dim}, Init::constant(1));
    }
    b.ffn_norm = make("post_attention_layernorm.weight", {D}, Init::constant(1));
    b.gate = make("mlp.gate_proj.weight", {F, D}, Init::matrix(D));
    b.up = make("mlp.up_proj.weight", {F, D}, Init::matrix(D));
    b.down = make("mlp.down_proj.weight", {D, F}, Init::into_residual(F, config.n_blocks));
    blocks_.push_back(std::move(b));
  }
  if (span.has_head) {
    final_norm_ = maker.make("model.norm.weight", {D}, Init::constant(1));
    if (config.tied_embeddings)
      output_ = embedding_;
    else
      output_ = maker.make("lm_head.weight", {V, D}, Init::matrix(D));
  }
}

torch::Tensor DenseNet::embed(const torch::Tensor& ids_BT) {
  return torch::embedding(embedding_, ids_BT);
}

const Rotation& DenseNet::rotation(int64_t n_tokens, const torch::Device& device) {
  if (!rotation_.cos.defined() || rotation_.cos.size(0) != n_tokens || rotation_.cos.device() != device)
    rotation_ = make_rotation(n_tokens, 1, config_.attention.n_rot, config_.attention.rope_theta, device);
  return rotation_;
}

torch::Tensor DenseNet::attention(const Block& w, const torch::Tensor& x_BTD) {
  const AttentionShape& shape = config_.attention.shape;
  const int64_t B = x_BTD.size(0), T = x_BTD.size(1);
  const auto heads = [&](const torch::Tensor& x, int64_t n) { return x.view({B, T, n, shape.head_dim}); };
  torch::Tensor q = heads(linear(x_BTD, w.q, precision_, w.q_bias), shape.n_heads);
  torch::Tensor k = heads(linear(x_BTD, w.k, precision_, w.k_bias), shape.n_kv_heads);
  const torch::Tensor v = heads(linear(x_BTD, w.v, precision_, w.v_bias), shape.n_kv_heads);
  if (w.q_norm.defined()) {
    q = rms_norm(q, w.q_norm, config_.rms_eps);
    k = rms_norm(k, w.k_norm, config_.rms_eps);
  }
  const Rotation& r = rotation(T, x_BTD.device());
  const torch::Tensor y = attend(rotate(q.transpose(1, 2), r), rotate(k.transpose(1, 2), r),
                                 v.transpose(1, 2), shape.scale, precision_);
  return linear(y.transpose(1, 2).reshape({B, T, -1}), w.output, precision_);
}

torch::Tensor DenseNet::block(int64_t index, const torch::Tensor& x_BTD, const torch::Tensor& /*ids_BT*/) {
  ENSURE(index >= span_.first_block && index < span_.last_block, "a block of another stage");
  const Block& w = blocks_[static_cast<size_t>(index - span_.first_block)];
  const double eps = config_.rms_eps;
  const torch::Tensor x = x_BTD + attention(w, rms_norm(x_BTD, w.mixer_norm, eps));
  return x + swiglu(rms_norm(x, w.ffn_norm, eps), w.gate, w.up, w.down, precision_);
}

torch::Tensor DenseNet::head(const torch::Tensor& x_BTD) {
  return linear(rms_norm(x_BTD, final_norm_, config_.rms_eps), output_, precision_);
}

}  // namespace forebay::train
