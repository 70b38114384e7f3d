#include <fmt/format.h>

#include "convert/tensor_plan.h"
#include "convert/v_heads.h"

namespace forebay::convert {
namespace {

/// Where the query or key row of Llama's rotated pairs comes from: GGUF keeps the two rows of a pair side by
/// side, the checkpoint keeps first and second halves of a head apart.
std::function<uint64_t(uint64_t)> interleave_halves(uint64_t head_dim) {
  return [head_dim](uint64_t row) {
    const uint64_t head = row / head_dim, in_head = row % head_dim;
    return head * head_dim + in_head % 2 * (head_dim / 2) + in_head / 2;
  };
}

/// Rows first .. first + n of every group of `group` rows.
std::function<uint64_t(uint64_t)> slice_of_groups(uint64_t group, uint64_t first, uint64_t n) {
  return [=](uint64_t row) { return row / n * group + first + row % n; };
}

}  // namespace

Result<void> TensorPlan::matrix(std::string name, std::string_view from, uint64_t in, uint64_t out,
                                TensorRole role) {
  const WeightRows rows = TRY(checkpoint_.take(from, {out, in}));
  add(std::move(name), {in, out}, role, RowSource(rows));
  return {};
}

Result<void> TensorPlan::vector(std::string name, std::string_view from, uint64_t n) {
  const WeightRows rows = TRY(checkpoint_.take(from, {n}));
  add(std::move(name), {n}, TensorRole::kStructure, RowSource(rows));
  return {};
}

Result<void> TensorPlan::norm(std::string name, std::string_view from, uint64_t n) {
  RowSource source(TRY(checkpoint_.take(from, {n})));
  if (config_.norms_are_zero_centred()) source = std::move(source).plus_one();
  add(std::move(name), {n}, TensorRole::kStructure, std::move(source));
  return {};
}

Result<void> TensorPlan::attention(const std::string& to, const std::string& from) {
  const AttentionDims& a = config_.attention;
  const uint64_t d = config_.d_model, q = a.n_heads * a.head_dim, kv = a.n_kv_heads * a.head_dim;
  // With an output gate every head's query rows are followed by its gate rows, in both formats.
  const uint64_t q_rows = config_.is_hybrid() ? 2 * q : q;
  if (config_.family == Family::kLlama) {
    const auto order = interleave_halves(a.head_dim);
    RowSource q_source(TRY(checkpoint_.take(from + "q_proj.weight", {q, d})));
    RowSource k_source(TRY(checkpoint_.take(from + "k_proj.weight", {kv, d})));
    add(to + "attn_q.weight", {d, q}, TensorRole::kMatrix, std::move(q_source).with_rows(q, order));
    add(to + "attn_k.weight", {d, kv}, TensorRole::kMatrix, std::move(k_source).with_rows(kv, order));
  } else {
    TRY(matrix(to + "attn_q.weight", from + "q_proj.weight", d, q_rows));
    TRY(matrix(to + "attn_k.weight", from + "k_proj.weight", d, kv));
  }
  TRY(matrix(to + "attn_v.weight", from + "v_proj.weight", d, kv));
  TRY(matrix(to + "attn_output.weight", from + "o_proj.weight", q, d));
  if (a.bias) {
    TRY(vector(to + "attn_q.bias", from + "q_proj.bias", q));
    TRY(vector(to + "attn_k.bias", from + "k_proj.bias", kv));
    TRY(vector(to + "attn_v.bias", from + "v_proj.bias", kv));
  }
  if (config_.has_qk_norm()) {
    TRY(norm(to + "attn_q_norm.weight", from + "q_norm.weight", a.head_dim));
    TRY(norm(to + "attn_k_norm.weight", from + "k_norm.weight", a.head_dim));
  }
  if (config_.family == Family::kQwen4Exp) TRY(indexer(to + "indexer.", from + "indexer."));
  return {};
}

Result<void> TensorPlan::indexer(const std::string& to, const std::string& from) {
  const uint64_t d = config_.d_model, head_dim = config_.indexer.head_dim;
  const uint64_t q = config_.indexer.n_heads * head_dim;
  // One projection holds the query heads' rows, then the key's.
  const RowSource both(TRY(checkpoint_.take(from + "index_qk_proj.weight", {q + head_dim, d})));
  add(to + "q_proj.weight", {d, q}, TensorRole::kIndexer,
      RowSource(both).with_rows(q, [](uint64_t row) { return row; }));
  add(to + "k_proj.weight", {d, head_dim}, TensorRole::kIndexer,
      RowSource(both).with_rows(head_dim, [q](uint64_t row) { return q + row; }));
  TRY(norm(to + "q_norm.weight", from + "q_layernorm.weight", head_dim));
  return norm(to + "k_norm.weight", from + "k_layernorm.weight", head_dim);
}

Result<void> TensorPlan::gated_delta(const std::string& to, const std::string& from) {
  const GatedDeltaDims& g = config_.gated_delta;
  const uint64_t d = config_.d_model, value = g.value_width(), channels = g.conv_channels();
  const uint64_t first_v = 2 * g.key_width();  // q and k channels come first and keep their order
  // qwen3next keeps the checkpoint's order of V heads, the later families are tiled.
  const VHeadOrder heads(g, config_.family != Family::kQwen3Next);

  if (config_.family == Family::kQwen3Next) {
    // Both projections are groups of one K head each: [q | k | its v heads | their z] and [beta | alpha].
    const uint64_t v = g.n_v_heads / g.n_k_heads * g.v_dim, group = 2 * g.k_dim + 2 * v;
    const RowSource all(TRY(checkpoint_.take(from + "in_proj_qkvz.weight", {g.n_k_heads * group, d})));
    const auto q_rows = slice_of_groups(group, 0, g.k_dim), k_rows = slice_of_groups(group, g.k_dim, g.k_dim);
    const auto v_rows = slice_of_groups(group, 2 * g.k_dim, v),
               z_rows = slice_of_groups(group, 2 * g.k_dim + v, v);
    const uint64_t first_k = g.key_width();
    add(to + "attn_qkv.weight", {d, channels}, TensorRole::kMatrix,
        RowSource(all).with_rows(channels, [=](uint64_t row) {
          if (row < first_k) return q_rows(row);
          return row < first_v ? k_rows(row - first_k) : v_rows(row - first_v);
        }));
    add(to + "attn_gate.weight", {d, value}, TensorRole::kMatrix, RowSource(all).with_rows(value, z_rows));
    TRY(matrix(to + "ssm_ba.weight", from + "in_proj_ba.weight", d, 2 * g.n_v_heads, TensorRole::kStructure));
  } else {
    RowSource qkv(TRY(checkpoint_.take(from + "in_proj_qkv.weight", {channels, d})));
    RowSource z(TRY(checkpoint_.take(from + "in_proj_z.weight", {value, d})));
    RowSource alpha(TRY(checkpoint_.take(from + "in_proj_a.weight", {g.n_v_heads, d})));
    RowSource beta(TRY(checkpoint_.take(from + "in_proj_b.weight", {g.n_v_heads, d})));
    add(to + "attn_qkv.weight", {d, channels}, TensorRole::kMatrix,
        std::move(qkv).with_rows(channels, heads.rows(g.v_dim, first_v)));
    add(to + "attn_gate.weight", {d, value}, TensorRole::kMatrix,
        std::move(z).with_rows(value, heads.rows(g.v_dim, 0)));
    add(to + "ssm_alpha.weight", {d, g.n_v_heads}, TensorRole::kStructure,
        std::move(alpha).with_rows(g.n_v_heads, heads.rows(1, 0)));
    add(to + "ssm_beta.weight", {d, g.n_v_heads}, TensorRole::kStructure,
        std::move(beta).with_rows(g.n_v_heads, heads.rows(1, 0)));
  }
  RowSource conv(TRY(checkpoint_.take(from + "conv1d.weight", {channels, g.conv_kernel})));
  RowSource a_log(TRY(checkpoint_.take(from + "A_log", {g.n_v_heads})));
  RowSource dt(TRY(checkpoint_.take(from + "dt_bias", {g.n_v_heads})));
  add(to + "ssm_conv1d.weight", {g.conv_kernel, channels}, TensorRole::kStructure,
      std::move(conv).with_rows(channels, heads.rows(g.v_dim, first_v)));
  add(to + "ssm_a", {g.n_v_heads}, TensorRole::kStructure,
      std::move(a_log).with_column_runs(1, heads.order()).minus_exp());
  add(to + "ssm_dt.bias", {g.n_v_heads}, TensorRole::kStructure,
      std::move(dt).with_column_runs(1, heads.order()));
  // This norm alone is stored around one, so nothing is added.
  TRY(vector(to + "ssm_norm.weight", from + "norm.weight", g.v_dim));
  RowSource out(TRY(checkpoint_.take(from + "out_proj.weight", {d, value})));
  add(to + "ssm_out.weight", {value, d}, TensorRole::kMatrix,
      std::move(out).with_column_runs(g.v_dim, heads.order()));
  return {};
}

Result<void> TensorPlan::feed_forward(const std::string& to, const std::string& from) {
  const uint64_t d = config_.d_model, width = config_.d_ffn;
  TRY(matrix(to + "ffn_gate.weight", from + "gate_proj.weight", d, width, TensorRole::kBulk));
  TRY(matrix(to + "ffn_up.weight", from + "up_proj.weight", d, width, TensorRole::kBulk));
  return matrix(to + "ffn_down.weight", from + "down_proj.weight", width, d, TensorRole::kBulk);
}

Result<void> TensorPlan::experts(const std::string& to, const std::string& from) {
  const ExpertDims& e = config_.experts;
  const uint64_t d = config_.d_model;
  const auto add_experts = [&](const char* name, uint64_t in, uint64_t out, RowSource source) {
    add(to + name, {in, out, e.n_experts}, TensorRole::kBulk, std::move(source));
  };
  // Stacked: one tensor with gate and up rows of all experts. Otherwise one tensor per expert and plane.
  const auto one_by_one = [&](const char* plane, uint64_t in, uint64_t out) -> Result<RowSource> {
    std::vector<WeightRows> parts;
    for (uint64_t i = 0; i < e.n_experts; ++i)
      parts.push_back(
          TRY(checkpoint_.take(fmt::format("{}experts.{}.{}.weight", from, i, plane), {out, in})));
    return RowSource(std::move(parts));
  };

  TRY(matrix(to + "ffn_gate_inp.weight", from + "gate.weight", d, e.n_experts, TensorRole::kStructure));
  if (checkpoint_.has(from + "experts.gate_up_proj") || checkpoint_.has(from + "experts.down_proj")) {
    const RowSource both(TRY(checkpoint_.take(from + "experts.gate_up_proj", {e.n_experts, 2 * e.width, d})));
    const uint64_t n = e.n_experts * e.width;
    add_experts("ffn_gate_exps.weight", d, e.width,
                RowSource(both).with_rows(n, slice_of_groups(2 * e.width, 0, e.width)));
    add_experts("ffn_up_exps.weight", d, e.width,
                RowSource(both).with_rows(n, slice_of_groups(2 * e.width, e.width, e.width)));
    add_experts("ffn_down_exps.weight", e.width, d,
                RowSource(TRY(checkpoint_.take(from + "experts.down_proj", {e.n_experts, d, e.width}))));
  } else {
    add_experts("ffn_gate_exps.weight", d, e.width, TRY(one_by_one("gate_proj", d, e.width)));
    add_experts("ffn_up_exps.weight", d, e.width, TRY(one_by_one("up_proj", d, e.width)));
    add_experts("ffn_down_exps.weight", e.width, d, TRY(one_by_one("down_proj", e.width, d)));
  }
  if (e.shared_width == 0) return {};
  const uint64_t width = e.shared_width;
  TRY(vector(to + "ffn_gate_inp_shexp.weight", from + "shared_expert_gate.weight", d));
  TRY(matrix(to + "ffn_gate_shexp.weight", from + "shared_expert.gate_proj.weight", d, width));
  TRY(matrix(to + "ffn_up_shexp.weight", from + "shared_expert.up_proj.weight", d, width));
  return matrix(to + "ffn_down_shexp.weight", from + "shared_expert.down_proj.weight", width, d);
}

}  // namespace forebay::convert
