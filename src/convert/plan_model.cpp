#include <fmt/format.h>

#include "convert/tensor_plan.h"

namespace forebay::convert {

Result<void> TensorPlan::block(const std::string& to, const std::string& from, bool is_recurrent,
                               bool has_ngrams) {
  const bool has_streams = config_.family == Family::kQwen4Exp;
  if (has_streams) {
    TRY(streams(to + "hc_attn", from + "attn_hyper_connection.", true));
    TRY(streams(to + "hc_ffn", from + "mlp_hyper_connection.", true));
  } else {
    TRY(norm(to + "attn_norm.weight", from + "input_layernorm.weight", config_.d_model));
    TRY(norm(to + (config_.is_hybrid() ? "post_attention_norm.weight" : "ffn_norm.weight"),
             from + "post_attention_layernorm.weight", config_.d_model));
  }
  if (is_recurrent)
    TRY(gated_delta(to, from + "linear_attn."));
  else
    TRY(attention(to, from + "self_attn."));
  if (has_ngrams) TRY(ngram_injection(to, from + "ple."));
  return config_.has_experts() ? experts(to, from + "mlp.") : feed_forward(to, from + "mlp.");
}

Result<void> TensorPlan::trunk() {
  const uint64_t d = config_.d_model;
  TRY(matrix("token_embd.weight", "embed_tokens.weight", d, config_.n_vocab));
  // Readers take the embedding when there is no output.
  const bool is_tied = config_.tied_embeddings ||
                       (!config_.json.has("tie_word_embeddings") && !checkpoint_.has("lm_head.weight"));
  if (!is_tied) TRY(matrix("output.weight", "lm_head.weight", d, config_.n_vocab));
  if (config_.family == Family::kQwen4Exp)
    TRY(streams("output_hc", "hyper_connection_mixer.", false));
  else
    TRY(norm("output_norm.weight", "norm.weight", d));
  if (config_.ngram.block >= 0) TRY(ngram_table());
  for (uint64_t i = 0; i < config_.n_blocks; ++i)
    TRY(block(fmt::format("blk.{}.", i), fmt::format("layers.{}.", i), config_.recurrent[i],
              config_.ngram.block == static_cast<int64_t>(i)));
  return {};
}

Result<void> TensorPlan::draft_head() {
  const uint64_t d = config_.d_model, n_vocab = config_.n_vocab;
  const std::string to = fmt::format("blk.{}.", config_.n_blocks);
  if (checkpoint_.has_any("mtp.layers.1."))
    return Error{Code::kUnsupported,
                 fmt::format("tensor {}: a draft head of more than one layer, wanted one",
                             checkpoint_.full_name(checkpoint_.names_from("mtp.layers.1.")[0]))};
  TRY(block(to, "mtp.layers.0.", false, false));
  TRY(norm(to + "nextn.enorm.weight", "mtp.pre_fc_norm_embedding.weight", d));
  TRY(norm(to + "nextn.hnorm.weight", "mtp.pre_fc_norm_hidden.weight", config_.wide()));
  if (config_.family == Family::kQwen4Exp) {
    // One projection of [embedding ; hidden].
    const WeightRows embedding = TRY(checkpoint_.take("mtp.fc_embedding.weight", {d, d}));
    const WeightRows hidden = TRY(checkpoint_.take("mtp.fc_hidden.weight", {d, d}));
    add(to + "nextn.eh_proj.weight", {2 * d, d}, TensorRole::kMatrix,
        RowSource::side_by_side(embedding, hidden));
    TRY(streams(to + "nextn.hc_head", "mtp.hyper_connection_mixer.", false));
  } else {
    TRY(matrix(to + "nextn.eh_proj.weight", "mtp.fc.weight", 2 * d, d));
    TRY(norm(to + "nextn.shared_head_norm.weight", "mtp.norm.weight", d));
  }
  if (checkpoint_.has("mtp.embed_tokens.weight"))
    TRY(matrix(to + "nextn.embed_tokens.weight", "mtp.embed_tokens.weight", d, n_vocab));
  if (checkpoint_.has("mtp.lm_head.weight"))
    TRY(matrix(to + "nextn.shared_head_head.weight", "mtp.lm_head.weight", d, n_vocab));
  return {};
}

}  // namespace forebay::convert
