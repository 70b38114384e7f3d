#include "train/nets/sparse_attention.h"

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/block_select.h"
#include "kernels/isa.h"

namespace forebay::train {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// The n_keep best visible blocks of every query by the engine's own rule, ties included. score [B, T,
/// blocks].
torch::Tensor choose_as_the_engine(const torch::Tensor& score, int64_t n_keep, int64_t block) {
  const torch::Tensor scores = score.to(torch::kFloat32).contiguous();
  torch::Tensor chosen = torch::zeros(scores.sizes(), torch::kBool);
  const int64_t T = scores.size(1), n_blocks = scores.size(2);
  std::vector<uint32_t> scratch;
  std::vector<CellRange> ranges;
  for (int64_t row = 0; row < scores.size(0) * T; ++row) {
    const int64_t n_cells = row % T + 1, n_complete = n_cells / block;
    const std::span<const float> visible(scores.data_ptr<float>() + row * n_blocks,
                                         static_cast<size_t>(n_complete));
    select_blocks(best_isa(), visible, n_keep, static_cast<int>(block), n_cells, scratch, ranges);
    bool* to = chosen.data_ptr<bool>() + row * n_blocks;
    for (const CellRange& range : ranges)
      for (int64_t b = range.begin / block; b < std::min(range.end / block, n_complete); ++b) to[b] = true;
  }
  return chosen;
}

}  // namespace

SparseAttentionWeights make_sparse_attention_weights(ParameterMaker& maker, const std::string& name,
                                                     const ModelConfig& config) {
  const AttentionShape& shape = config.attention.shape;
  const int64_t D = config.d_model, d = shape.head_dim, q = shape.n_heads * d, kv = shape.n_kv_heads * d;
  const int64_t dim = config.indexer.head_dim;
  SparseAttentionWeights w;
  w.q = maker.make(name + ".q_proj.weight", {2 * q, D}, Init::matrix(D));
  w.k = maker.make(name + ".k_proj.weight", {kv, D}, Init::matrix(D));
  w.v = maker.make(name + ".v_proj.weight", {kv, D}, Init::matrix(D));
  w.output = maker.make(name + ".o_proj.weight", {D, q}, Init::into_residual(q, config.n_blocks));
  w.q_norm = maker.make(name + ".q_norm.weight", {d}, Init::constant(0));
  w.k_norm = maker.make(name + ".k_norm.weight", {d}, Init::constant(0));
  w.index_qk = maker.make(name + ".indexer.index_qk_proj.weight", {(config.indexer.n_heads + 1) * dim, D},
                          Init::matrix(D));
  w.index_q_norm = maker.make(name + ".indexer.q_layernorm.weight", {dim}, Init::constant(0));
  w.index_k_norm = maker.make(name + ".indexer.k_layernorm.weight", {dim}, Init::constant(0));
  return w;
}

BlockChoice choose_blocks(const SparseAttentionWeights& w, const ModelConfig& config,
                          const torch::Tensor& x_BTD, const Rotations& rotations) {
  const IndexerConfig& index = config.indexer;
  const int64_t B = x_BTD.size(0), T = x_BTD.size(1), block = index.block_cells, n_blocks = T / block;
  // In f32 always: half precision flips choices.
  const torch::Tensor both =
      linear(x_BTD.detach(), w.index_qk, Precision::kF32).view({B, T, index.n_heads + 1, index.head_dim});
  const torch::Tensor q =
      rotate(rms_norm(both.narrow(2, 0, index.n_heads), w.index_q_norm + 1, config.rms_eps).transpose(1, 2),
             rotations.tokens);
  const torch::Tensor raw = both.select(2, index.n_heads).narrow(1, 0, n_blocks * block);
  const torch::Tensor pooled = raw.reshape({B, n_blocks, block, index.head_dim}).mean(2);
  const torch::Tensor k = rotate(rms_norm(pooled, w.index_k_norm + 1, config.rms_eps), rotations.blocks);

  BlockChoice choice;
  choice.score = torch::relu(torch::matmul(q, k.unsqueeze(1).transpose(-1, -2))).sum(1) /
                 std::sqrt(static_cast<double>(index.head_dim));
  const auto numbers = torch::TensorOptions().dtype(torch::kInt64).device(x_BTD.device());
  const torch::Tensor n_complete = (torch::arange(T, numbers) + 1).div(block, "floor").unsqueeze(1);
  choice.visible = torch::arange(n_blocks, numbers).unsqueeze(0) < n_complete;
  const int64_t n_keep = index.top_k_cells / block;
  if (n_keep >= n_blocks) {
    choice.chosen = choice.visible.unsqueeze(0).expand({B, T, n_blocks});
    return choice;
  }
  if (!choice.score.is_cuda()) {
    choice.chosen = choose_as_the_engine(choice.score.detach(), n_keep, block);
    return choice;
  }
  const torch::Tensor ranked = choice.score.detach().masked_fill(choice.visible.logical_not(), kNever);
  const torch::Tensor best = std::get<1>(ranked.topk(n_keep, -1));
  const torch::Tensor kept = torch::zeros_like(ranked, torch::kBool).scatter(-1, best, true);
  choice.chosen = kept.logical_and(choice.visible);
  return choice;
}

torch::Tensor hidden_keys(const BlockChoice& choice, int64_t block, int64_t n_tokens) {
  const torch::Tensor hidden = choice.visible.logical_and(choice.chosen.logical_not());
  const torch::Tensor keys = hidden.repeat_interleave(block, -1);
  return torch::constant_pad_nd(keys, {0, n_tokens - keys.size(-1)}, false).unsqueeze(1);
}

torch::Tensor indexer_loss(const BlockChoice& choice, const torch::Tensor& probabilities, int64_t block) {
  const int64_t n_blocks = choice.score.size(-1);
  const torch::Tensor mass = probabilities.detach()
                                 .sum(1)
                                 .narrow(-1, 0, n_blocks * block)
                                 .unflatten(-1, {n_blocks, block})
                                 .sum(-1)
                                 .masked_fill(choice.chosen.logical_not(), 0);
  const torch::Tensor target = mass / mass.sum(-1, true).clamp_min(1e-20);
  // Blocks out of sight take no part; a row without any must not become NaN.
  const torch::Tensor scores = choice.score.masked_fill(choice.chosen.logical_not(), -1e30);
  const torch::Tensor entropy = torch::xlogy(target, target);
  const torch::Tensor kl = (entropy - target * scores.log_softmax(-1)).sum(-1);
  const int64_t n_rows = choice.score.size(0) * (choice.score.size(1) - block + 1);
  return kl.sum() / static_cast<double>(n_rows);
}

SparseAttention sparse_attention_layer(const SparseAttentionWeights& w, const ModelConfig& config,
                                       int64_t block, bool dense, bool with_loss, const torch::Tensor& x_BTD,
                                       const Rotations& rotations, Precision precision) {
  const AttentionConfig& a = config.attention;
  const int64_t B = x_BTD.size(0), T = x_BTD.size(1), d = a.shape.head_dim,
                n_blocks = block > 0 ? T / block : 0;

  const torch::Tensor both = linear(x_BTD, w.q, precision).view({B, T, a.shape.n_heads, 2, d});
  const torch::Tensor gate = both.select(3, 1);
  const auto normed = [&](const torch::Tensor& x, const torch::Tensor& norm) {
    return rotate(rms_norm(x, norm + 1, config.rms_eps).transpose(1, 2), rotations.tokens);
  };
  const torch::Tensor q = normed(both.select(3, 0), w.q_norm);
  const torch::Tensor k = normed(linear(x_BTD, w.k, precision).view({B, T, a.shape.n_kv_heads, d}), w.k_norm);
  const torch::Tensor v = linear(x_BTD, w.v, precision).view({B, T, a.shape.n_kv_heads, d}).transpose(1, 2);

  SparseAttention out;
  torch::Tensor hidden, probabilities;
  BlockChoice choice;
  const bool is_sparse = !dense && n_blocks * block > config.indexer.top_k_cells;
  with_loss = with_loss && n_blocks > 0;
  if (n_blocks > 0 && (is_sparse || with_loss)) {
    choice = choose_blocks(w, config, x_BTD, rotations);
    if (dense) choice.chosen = choice.visible.unsqueeze(0).expand_as(choice.score);
    if (is_sparse) hidden = hidden_keys(choice, block, T);
  }
  const torch::Tensor y =
      attend(q, k, v, a.shape.scale, precision, hidden, with_loss ? &probabilities : nullptr).transpose(1, 2);
  if (with_loss) out.indexer_loss = indexer_loss(choice, probabilities, block);
  out.y = linear((y * torch::sigmoid(gate)).reshape({B, T, -1}), w.output, precision);
  return out;
}

}  // namespace forebay::train
