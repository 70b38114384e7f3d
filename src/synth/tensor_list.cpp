#include "synth/tensor_list.h"

#include <cmath>

#include <fmt/format.h>

#include "convert/ngram_hash.h"

namespace forebay::synth {
namespace {

using convert::CheckpointConfig;
using convert::Family;

/// Independent numbers around a mean, for tensors too small for cards.
RowFunction numbers(double mean, double deviation) {
  return [=](Key key, uint64_t row, std::span<float> out) {
    const Key of_row = key.numbered(row);
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(mean + deviation * of_row.normal(i));
  };
}

/// Trained norm weights scatter around one.
RowFunction norm_weights(double mean = 1) {
  return numbers(mean, 0.05 * mean);
}

/// ssm_a, -exp(A_log): decay rates from 1/2 to 8, evenly by order of magnitude.
void decay_rates(Key key, uint64_t row, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(-0.5 * std::pow(16.0, key.numbered(row).uniform(i)));
}

/// ssm_dt: steps softplus(dt) from 0.001 to 0.03, by order of magnitude. With the rates above, a head forgets
/// within 4 to 2,000 tokens.
void time_steps(Key key, uint64_t row, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const double step = 0.001 * std::pow(30.0, key.numbered(row).uniform(i));
    out[i] = static_cast<float>(std::log(std::expm1(step)));
  }
}

class TensorList {
 public:
  TensorList(const Geometry& geometry, const RoutingStatistics& routing)
      : c_(geometry.config), statistics_(geometry.config, routing) {}

  std::vector<SynthTensor> make() {
    matrix("token_embd.weight", c_.d_model, c_.n_vocab, statistics_.embedding());
    matrix("output.weight", c_.d_model, c_.n_vocab, statistics_.output_head());
    if (c_.family == Family::kQwen4Exp)
      streams("output_hc", false);
    else
      vector("output_norm.weight", c_.d_model, norm_weights());
    if (c_.ngram.block >= 0)
      add("per_layer_token_embd.weight",
          {c_.ngram.row_width(), convert::ngram_table_rows(c_.ngram, c_.n_vocab)}, TensorRole::kBulk,
          Normal{});
    for (uint64_t i = 0; i < c_.n_blocks; ++i) block(i);
    return std::move(tensors_);
  }

 private:
  void add(std::string name, std::vector<uint64_t> ne, TensorRole role,
           std::variant<Normal, RowFunction> weights) {
    tensors_.push_back({prefix_ + std::move(name), std::move(ne), role, std::move(weights)});
  }
  void matrix(std::string name, uint64_t in, uint64_t out, Normal weights,
              TensorRole role = TensorRole::kMatrix) {
    add(std::move(name), {in, out}, role, weights);
  }
  void vector(std::string name, uint64_t n, RowFunction weights) {
    add(std::move(name), {n}, TensorRole::kStructure, std::move(weights));
  }

  void block(uint64_t i) {
    block_ = i;
    prefix_ = fmt::format("blk.{}.", i);
    if (c_.family == Family::kQwen4Exp) {
      streams("hc_attn", true);
      streams("hc_ffn", true);
    } else {
      vector("attn_norm.weight", c_.d_model, norm_weights());
      vector(c_.is_hybrid() ? "post_attention_norm.weight" : "ffn_norm.weight", c_.d_model, norm_weights());
    }
    c_.recurrent[i] ? gated_delta() : attention();
    if (c_.ngram.block == static_cast<int64_t>(i)) ngram_injection();
    experts();
  }

  /// A read (and, in a block, write) of the residual streams.
  void streams(const std::string& role, bool has_inject) {
    const uint64_t wide = c_.wide(), rank = c_.streams.low_rank, n = c_.streams.n_streams;
    const double unit = 1 / std::sqrt(static_cast<double>(wide));
    vector(role + "_norm.weight", wide, norm_weights());
    // Both are divided by the number of streams before they meet a nonlinearity.
    matrix(role + "_down.weight", wide, rank, {.mean = 0, .deviation = static_cast<double>(n) * unit});
    matrix(role + "_up.weight", rank, wide,
           {.mean = 0, .deviation = 1 / std::sqrt(static_cast<double>(rank))});
    if (has_inject)
      matrix(role + "_inject.weight", wide, n, {.mean = 0, .deviation = static_cast<double>(n) * 0.5 * unit},
             TensorRole::kStructure);
  }

  void attention() {
    const convert::AttentionDims& a = c_.attention;
    const uint64_t d = c_.d_model, q = a.n_heads * a.head_dim, kv = a.n_kv_heads * a.head_dim;
    const Normal read = statistics_.read();
    // Where attention is the only memory it looks back a few tokens, mostly: a constant in queries and keys,
    // which rotates with the distance. In hybrids it averages over all that was.
    const Normal look = c_.is_hybrid() ? read : statistics_.biased_read(block_, 1.5, 1);
    const double sharpness = c_.is_hybrid() ? 1 : 1.6;
    matrix("attn_q.weight", d, c_.is_hybrid() ? 2 * q : q, look);
    matrix("attn_k.weight", d, kv, look);
    matrix("attn_v.weight", d, kv, read);
    matrix("attn_output.weight", q, d, statistics_.mixer_output(block_, q, c_.is_hybrid() ? 0.3 : 0.5));
    vector("attn_q_norm.weight", a.head_dim, norm_weights(sharpness));
    vector("attn_k_norm.weight", a.head_dim, norm_weights(sharpness));
    if (c_.family != Family::kQwen4Exp) return;
    const uint64_t head_dim = c_.indexer.head_dim;
    matrix("indexer.q_proj.weight", d, c_.indexer.n_heads * head_dim, read, TensorRole::kIndexer);
    matrix("indexer.k_proj.weight", d, head_dim, read, TensorRole::kIndexer);
    vector("indexer.q_norm.weight", head_dim, norm_weights());
    vector("indexer.k_norm.weight", head_dim, norm_weights());
  }

  void gated_delta() {
    const convert::GatedDeltaDims& g = c_.gated_delta;
    const uint64_t d = c_.d_model, value = g.value_width(), channels = g.conv_channels();
    const Normal read = statistics_.read();
    matrix("attn_qkv.weight", d, channels, read);
    // A gate of random sign would make the output new with every token, however slow the state is.
    const bool is_silu = c_.family != Family::kQwen4Exp;
    matrix("attn_gate.weight", d, value, is_silu ? statistics_.biased_read(block_, 1.5, 0.5) : read);
    // Alphas are added to the time steps, which they only modulate.
    const auto small = [this](double gain, uint64_t rows, const char* name) {
      matrix(name, c_.d_model, rows, statistics_.read(gain), TensorRole::kStructure);
    };
    if (c_.family == Family::kQwen3Next) {
      small(0.5, 2 * g.n_v_heads, "ssm_ba.weight");
    } else {
      small(0.5, g.n_v_heads, "ssm_alpha.weight");
      small(1.0, g.n_v_heads, "ssm_beta.weight");
    }
    add("ssm_conv1d.weight", {g.conv_kernel, channels}, TensorRole::kStructure, numbers(0, 0.5));
    vector("ssm_a", g.n_v_heads, decay_rates);
    vector("ssm_dt.bias", g.n_v_heads, time_steps);
    vector("ssm_norm.weight", g.v_dim, norm_weights());
    matrix("ssm_out.weight", value, d, statistics_.mixer_output(block_, value, is_silu ? 1.4 : 0.5));
  }

  void ngram_injection() {
    const convert::NgramConfig& n = c_.ngram;
    const uint64_t wide = c_.wide();
    const double unit = 1 / std::sqrt(static_cast<double>(n.embedding_width));
    matrix("ple_key.weight", n.embedding_width, wide, {.mean = 0, .deviation = unit});
    matrix("ple_value.weight", n.embedding_width, c_.d_model, {.mean = 0, .deviation = 0.5 * unit});
    for (const char* name : {"ple_norm_key.weight", "ple_norm_query.weight", "ple_norm_conv.weight"})
      vector(name, wide, norm_weights());
    add("ple_conv1d.weight", {n.conv_kernel, wide}, TensorRole::kStructure, numbers(0, 0.2));
  }

  void experts() {
    const convert::ExpertDims& e = c_.experts;
    const uint64_t d = c_.d_model;
    const auto router = [statistics = statistics_, block = block_](Key key, uint64_t row,
                                                                   std::span<float> out) {
      statistics.router_row(block, key, row, out);
    };
    add("ffn_gate_inp.weight", {d, e.n_experts}, TensorRole::kStructure, RowFunction(router));
    const Normal read = statistics_.read(), write = statistics_.expert_output(e.width);
    add("ffn_gate_exps.weight", {d, e.width, e.n_experts}, TensorRole::kBulk, read);
    add("ffn_up_exps.weight", {d, e.width, e.n_experts}, TensorRole::kBulk, read);
    add("ffn_down_exps.weight", {e.width, d, e.n_experts}, TensorRole::kBulk, write);
    if (e.shared_width == 0) return;
    add("ffn_gate_inp_shexp.weight", {d}, TensorRole::kStructure, read);
    matrix("ffn_gate_shexp.weight", d, e.shared_width, read);
    matrix("ffn_up_shexp.weight", d, e.shared_width, read);
    matrix("ffn_down_shexp.weight", e.shared_width, d, statistics_.expert_output(e.shared_width));
  }

  const CheckpointConfig& c_;
  const Statistics statistics_;
  std::string prefix_;
  uint64_t block_ = 0;
  std::vector<SynthTensor> tensors_;
};

}  // namespace

std::vector<SynthTensor> list_tensors(const Geometry& geometry, const RoutingStatistics& routing) {
  return TensorList(geometry, routing).make();
}

}  // namespace forebay::synth
