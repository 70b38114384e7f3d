#include "train/nets/hyper_net.h"

#include <fmt/format.h>

#include "core/ensure.h"

namespace forebay::train {
namespace {

torch::Tensor mean_of(const std::vector<torch::Tensor>& terms, int64_t n) {
  return torch::stack(terms).sum() / static_cast<double>(n);
}

}  // namespace

HyperNet::HyperNet(const ModelConfig& config, const StageSpan& span, std::optional<uint64_t> seed)
    : Net(config, span) {
  ParameterMaker maker(*this, seed);
  const int64_t D = config.d_model, V = config.n_vocab, S = config.streams.n_streams;
  const auto streams = [&](const std::string& name) {
    return make_stream_weights(maker, name, S, D, config.streams.low_rank, /*has_inject=*/false);
  };
  if (span.has_embedding || (span.has_head && config.tied_embeddings))
    embedding_ = maker.make("model.embed_tokens.weight", {V, D}, Init::matrix(D));
  for (int64_t i = span.first_block; i < span.last_block; ++i)
    blocks_.push_back(make_block(maker, fmt::format("model.layers.{}", i),
                                 config.mixers[static_cast<size_t>(i)] == MixerKind::kGatedDelta,
                                 config.ngram.block == i));
  if (!span.has_head) return;
  final_streams_ = streams("model.hyper_connection_mixer");
  output_ = config.tied_embeddings ? embedding_ : maker.make("lm_head.weight", {V, D}, Init::matrix(D));
  if (config.n_mtp_blocks == 0) return;
  draft_.emplace();
  draft_->embedding_norm = maker.make("mtp.pre_fc_norm_embedding.weight", {D}, Init::constant(0));
  draft_->hidden_norm = maker.make("mtp.pre_fc_norm_hidden.weight", {S * D}, Init::constant(0));
  draft_->project_embedding = maker.make("mtp.fc_embedding.weight", {D, D}, Init::matrix(D));
  draft_->project_hidden = maker.make("mtp.fc_hidden.weight", {D, D}, Init::matrix(D));
  draft_->block = make_block(maker, "mtp.layers.0", false, false);
  draft_->final_streams = streams("mtp.hyper_connection_mixer");
}

HyperNet::Block HyperNet::make_block(ParameterMaker& maker, const std::string& name, bool is_recurrent,
                                     bool has_ngrams) const {
  const auto streams = [&](const char* which) {
    return make_stream_weights(maker, name + which, config_.streams.n_streams, config_.d_model,
                               config_.streams.low_rank, /*has_inject=*/true);
  };
  Block b;
  b.mixer_streams = streams(".attn_hyper_connection");
  if (is_recurrent)
    b.gated_delta = make_delta_weights(maker, name + ".linear_attn", config_);
  else
    b.attention = make_sparse_attention_weights(maker, name + ".self_attn", config_);
  if (has_ngrams) b.ngram = make_ngram_parameters(maker, name + ".ple", config_);
  b.ffn_streams = streams(".mlp_hyper_connection");
  b.ffn = make_mixture_weights(maker, name + ".mlp", config_);
  return b;
}

const Rotations& HyperNet::rotations(int64_t n_tokens, const torch::Device& device) {
  const torch::Tensor& cos = rotations_.tokens.cos;
  if (cos.defined() && cos.size(0) == n_tokens && cos.device() == device) return rotations_;
  const AttentionConfig& a = config_.attention;
  rotations_.tokens = make_rotation(n_tokens, 1, a.n_rot, a.rope_theta, device);
  if (const int64_t block = config_.indexer.block_cells; block > 0)
    rotations_.blocks = make_rotation(n_tokens / block, block, a.n_rot, a.rope_theta, device);
  return rotations_;
}

torch::Tensor HyperNet::embed(const torch::Tensor& ids_BT) {
  // Every stream starts as a whole copy.
  return torch::embedding(embedding_, ids_BT).repeat({1, 1, config_.streams.n_streams});
}

torch::Tensor HyperNet::run(const Block& w, int64_t block_cells, const torch::Tensor& x_BTW,
                            const torch::Tensor& ids_BT) {
  const int64_t S = config_.streams.n_streams;
  const bool training = torch::GradMode::is_enabled();
  torch::Tensor x = x_BTW;
  if (w.ngram) x = ngram_injection(*w.ngram, config_, ids_BT, x, precision_);

  StreamRead read = read_streams(w.mixer_streams, x, S, config_.rms_eps, precision_);
  if (w.gated_delta) {
    x = write_streams(x, read.weight, gated_delta_layer(*w.gated_delta, config_, read.x, precision_));
  } else {
    const SparseAttention attention = sparse_attention_layer(
        *w.attention, config_, block_cells, dense_attention_, training && weights_.indexer > 0, read.x,
        rotations(x.size(1), x.device()), precision_);
    if (attention.indexer_loss.defined()) indexer_.push_back(attention.indexer_loss);
    x = write_streams(x, read.weight, attention.y);
  }

  read = read_streams(w.ffn_streams, x, S, config_.rms_eps, precision_);
  const Mixture mixture = mixture_layer(w.ffn, config_, training && weights_.balance > 0, read.x, precision_);
  if (mixture.balance.defined()) balance_.push_back(mixture.balance);
  return write_streams(x, read.weight, mixture.y);
}

torch::Tensor HyperNet::block(int64_t index, const torch::Tensor& x_BTW, const torch::Tensor& ids_BT) {
  ENSURE(index >= span_.first_block && index < span_.last_block, "a block of another stage");
  return run(blocks_[static_cast<size_t>(index - span_.first_block)],
             config_.block_cells[static_cast<size_t>(index)], x_BTW, ids_BT);
}

torch::Tensor HyperNet::output(const StreamWeights& final_streams, const torch::Tensor& x_BTW) {
  const StreamRead read =
      read_streams(final_streams, x_BTW, config_.streams.n_streams, config_.rms_eps, precision_);
  return linear(read.x, output_, precision_);
}

torch::Tensor HyperNet::head(const torch::Tensor& x_BTW) {
  return output(final_streams_, x_BTW);
}

torch::Tensor HyperNet::draft_logits(const torch::Tensor& x_BTW, const torch::Tensor& ids_BT) {
  if (!draft_ || !embedding_.defined()) return {};
  const int64_t S = config_.streams.n_streams, D = config_.d_model, T = ids_BT.size(1);
  const torch::Tensor next = ids_BT.narrow(1, 1, T - 1);
  const torch::Tensor embedded =
      rms_norm(torch::embedding(embedding_, next), draft_->embedding_norm + 1, config_.rms_eps);
  const torch::Tensor hidden = rms_norm(x_BTW.narrow(1, 0, T - 1).unflatten(-1, {S, D}),
                                        (draft_->hidden_norm + 1).view({S, D}), config_.rms_eps);
  // Each stream by itself: pooled, they would lose what the head needs.
  const torch::Tensor z = linear(hidden, draft_->project_hidden, precision_) +
                          linear(embedded, draft_->project_embedding, precision_).unsqueeze(-2);
  return output(draft_->final_streams, run(draft_->block, /*block_cells=*/0, z.flatten(-2), next));
}

torch::Tensor HyperNet::take_auxiliary_loss() {
  // Means over the whole model's blocks, so that stages add up to it.
  int64_t n_attention = 0;
  for (const int cells : config_.block_cells) n_attention += cells > 0 ? 1 : 0;
  torch::Tensor loss;
  const auto add = [&](std::vector<torch::Tensor>& terms, int64_t n, double weight) {
    if (terms.empty()) return;
    const torch::Tensor term = mean_of(terms, n) * weight;
    loss = loss.defined() ? loss + term : term;
    terms.clear();
  };
  add(balance_, config_.n_blocks, weights_.balance);
  add(indexer_, std::max<int64_t>(1, n_attention), weights_.indexer);
  return loss;
}

}  // namespace forebay::train
