#include "model/weights.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/weight_loader.h"
#include "quant/quant.h"

namespace forebay {
namespace {

/// Loads the blocks of one file. Names are those of specs of GGUF: blk.N.role.weight.
class BlockLoader {
 public:
  BlockLoader(WeightLoader& loader, const ModelConfig& config, int block)
      : loader_(loader), c_(config), prefix_(fmt::format("blk.{}.", block)) {}

  Result<BlockWeights> load(MixerKind mixer, bool indexer, bool ngram) {
    BlockWeights b;
    if (c_.family == Family::kQwen4Exp) {
      b.mixer_streams = TRY(streams("hc_attn", true));
      b.ffn_streams = TRY(streams("hc_ffn", true));
    } else {
      b.mixer_norm = TRY(vector("attn_norm.weight", c_.d_model));
      const bool hybrid = c_.has_mixer(MixerKind::kGatedDelta);
      b.ffn_norm = TRY(vector(hybrid ? "post_attention_norm.weight" : "ffn_norm.weight", c_.d_model));
    }
    if (mixer == MixerKind::kAttention)
      b.attention = TRY(attention(indexer));
    else
      b.gated_delta = TRY(gated_delta());
    if (ngram) b.ngram = TRY(ngram_table());
    b.ffn = TRY(ffn());
    if (c_.ffn.n_experts > 0) experts_ = TRY(experts());
    return b;
  }

  /// norm, down, up and (inside blocks) inject of one read/write pair.
  Result<HyperConnectionWeights> streams(const std::string& role, bool inject) {
    HyperConnectionWeights w;
    const int wide = c_.wide();
    w.norm = TRY(vector(role + "_norm.weight", wide));
    w.down = TRY(matrix(role + "_down.weight", wide, c_.streams.low_rank));
    w.up = TRY(matrix(role + "_up.weight", c_.streams.low_rank, wide));
    if (inject) w.inject = TRY(matrix(role + "_inject.weight", wide, c_.streams.n_streams));
    return w;
  }

  /// The block's expert planes, after load().
  const ExpertPlanes& planes() const { return experts_; }

  Result<MatrixView> matrix(const std::string& role, int64_t in, int64_t out) {
    return loader_.matrix(prefix_ + role, in, out);
  }
  Result<std::span<const float>> vector(const std::string& role, int64_t n) {
    return loader_.vector(prefix_ + role, n);
  }

 private:
  Result<AttentionWeights> attention(bool indexer) {
    const AttentionConfig& a = c_.attention;
    const int64_t D = c_.d_model;
    const int64_t q = static_cast<int64_t>(a.shape.n_heads) * a.shape.head_dim;
    const int64_t kv = static_cast<int64_t>(a.shape.n_kv_heads) * a.shape.head_dim;
    AttentionWeights w;
    w.q = TRY(matrix("attn_q.weight", D, a.output_gate ? 2 * q : q));
    w.k = TRY(matrix("attn_k.weight", D, kv));
    w.v = TRY(matrix("attn_v.weight", D, kv));
    w.output = TRY(matrix("attn_output.weight", q, D));
    if (a.qk_norm) {
      w.q_norm = TRY(vector("attn_q_norm.weight", a.shape.head_dim));
      w.k_norm = TRY(vector("attn_k_norm.weight", a.shape.head_dim));
    }
    if (a.bias) {
      w.q_bias = TRY(vector("attn_q.bias", q));
      w.k_bias = TRY(vector("attn_k.bias", kv));
      w.v_bias = TRY(vector("attn_v.bias", kv));
    }
    if (indexer) {
      const IndexerConfig& i = c_.indexer;
      w.indexer.q = TRY(matrix("indexer.q_proj.weight", D, static_cast<int64_t>(i.n_heads) * i.head_dim));
      w.indexer.k = TRY(matrix("indexer.k_proj.weight", D, i.head_dim));
      w.indexer.q_norm = TRY(vector("indexer.q_norm.weight", i.head_dim));
      w.indexer.k_norm = TRY(vector("indexer.k_norm.weight", i.head_dim));
    }
    return w;
  }

  Result<GatedDeltaWeights> gated_delta() {
    const GatedDeltaConfig& g = c_.gated_delta;
    const int64_t D = c_.d_model;
    const int n_v = g.shape.n_v_heads;
    GatedDeltaWeights w;
    if (loader_.has(prefix_ + "ssm_in.weight"))
      return Error{Code::kUnsupported, prefix_ +
                                           "ssm_in.weight: the fused legacy layout is not "
                                           "supported; convert the "
                                           "checkpoint again to get attn_qkv and attn_gate"};
    w.qkv = TRY(matrix("attn_qkv.weight", D, g.conv_channels()));
    w.gate = TRY(matrix("attn_gate.weight", D, g.value_width()));
    if (c_.family == Family::kQwen3Next) {
      w.alpha_beta = TRY(matrix("ssm_ba.weight", D, 2 * n_v));
    } else {
      w.alpha = TRY(matrix("ssm_alpha.weight", D, n_v));
      w.beta = TRY(matrix("ssm_beta.weight", D, n_v));
    }
    w.conv = TRY(loader_.conv(prefix_ + "ssm_conv1d.weight", g.conv_kernel, g.conv_channels()));
    w.a = TRY(vector("ssm_a", n_v));
    w.dt = TRY(vector("ssm_dt.bias", n_v));
    w.norm = TRY(vector("ssm_norm.weight", g.shape.v_dim));
    w.output = TRY(matrix("ssm_out.weight", g.value_width(), D));
    for (int h = 0; h < n_v; ++h)
      if (w.a[h] > 0)
        return Error{Code::kCorrupt,
                     fmt::format("{}ssm_a: element {} is {}, expected -exp(A_log) < 0", prefix_, h, w.a[h])};
    return w;
  }

  Result<NgramWeights> ngram_table() {
    const NgramConfig& n = c_.ngram;
    NgramWeights w;
    const int64_t rows = static_cast<int64_t>(n.head_offsets.back() + n.head_sizes.back());
    w.table = TRY(loader_.table("per_layer_token_embd.weight", n.row_width, rows));
    w.key = TRY(matrix("ple_key.weight", n.width(), c_.wide()));
    w.value = TRY(matrix("ple_value.weight", n.width(), c_.d_model));
    w.norm_key = TRY(vector("ple_norm_key.weight", c_.wide()));
    w.norm_query = TRY(vector("ple_norm_query.weight", c_.wide()));
    w.norm_conv = TRY(vector("ple_norm_conv.weight", c_.wide()));
    w.conv = TRY(loader_.conv(prefix_ + "ple_conv1d.weight", n.conv_kernel, c_.wide()));
    return w;
  }

  Result<FfnWeights> ffn() {
    const FfnConfig& f = c_.ffn;
    const int64_t D = c_.d_model;
    FfnWeights w;
    if (f.n_experts == 0) {
      w.gate = TRY(matrix("ffn_gate.weight", D, f.d_ffn));
      w.up = TRY(matrix("ffn_up.weight", D, f.d_ffn));
      w.down = TRY(matrix("ffn_down.weight", f.d_ffn, D));
      return w;
    }
    w.router = TRY(matrix("ffn_gate_inp.weight", D, f.n_experts));
    if (f.d_shared != 0) {
      w.shared_router = TRY(matrix("ffn_gate_inp_shexp.weight", D, 1));
      w.shared_gate = TRY(matrix("ffn_gate_shexp.weight", D, f.d_shared));
      w.shared_up = TRY(matrix("ffn_up_shexp.weight", D, f.d_shared));
      w.shared_down = TRY(matrix("ffn_down_shexp.weight", f.d_shared, D));
    }
    return w;
  }

  Result<ExpertPlanes> experts() {
    const FfnConfig& f = c_.ffn;
    const int64_t D = c_.d_model;
    ExpertPlanes p;
    if (loader_.has(prefix_ + "ffn_gate_up_exps.weight")) {
      // Fused: the gate's rows, then the up's, within each expert.
      const ExpertMatrices both =
          TRY(loader_.experts(prefix_ + "ffn_gate_up_exps.weight", D, 2 * f.d_expert, f.n_experts));
      p.gate = both;
      p.gate.first.n_rows = f.d_expert;
      p.up = p.gate;
      const int64_t gate_bytes = f.d_expert * both.first.row_stride_bytes;
      p.up.first.data += gate_bytes;
      p.up.file_offset += static_cast<uint64_t>(gate_bytes);
    } else {
      p.gate = TRY(loader_.experts(prefix_ + "ffn_gate_exps.weight", D, f.d_expert, f.n_experts));
      p.up = TRY(loader_.experts(prefix_ + "ffn_up_exps.weight", D, f.d_expert, f.n_experts));
    }
    p.down = TRY(loader_.experts(prefix_ + "ffn_down_exps.weight", f.d_expert, D, f.n_experts));
    return p;
  }

  WeightLoader& loader_;
  const ModelConfig& c_;
  std::string prefix_;
  ExpertPlanes experts_;
};

Result<MtpWeights> load_mtp(WeightLoader& loader, const ModelConfig& c, std::vector<ExpertPlanes>& experts) {
  BlockLoader blocks(loader, c, c.n_blocks);
  MtpWeights m;
  m.embedding_norm = TRY(blocks.vector("nextn.enorm.weight", c.d_model));
  m.hidden_norm = TRY(blocks.vector("nextn.hnorm.weight", c.wide()));
  m.project = TRY(blocks.matrix("nextn.eh_proj.weight", 2 * c.d_model, c.d_model));
  // The head's attention runs dense: its indexer tensors may be there and are not needed.
  m.block = TRY(blocks.load(MixerKind::kAttention, false, false));
  if (c.ffn.n_experts > 0) experts.push_back(blocks.planes());
  if (c.family == Family::kQwen4Exp)
    m.final_streams = TRY(blocks.streams("nextn.hc_head", false));
  else if (loader.has(fmt::format("blk.{}.nextn.shared_head_norm.weight", c.n_blocks)))
    m.final_norm = TRY(blocks.vector("nextn.shared_head_norm.weight", c.d_model));
  return m;
}

}  // namespace

Result<Weights> Weights::load(const GgufFile& trunk, const GgufFile* mtp, const ModelConfig& c,
                              MemoryBudget& budget, TrunkCopies copies) {
  Weights w;
  w.copies_ = std::move(copies);
  WeightLoader loader(trunk, w.copies_.trunk, w, budget);
  w.embedding = TRY(loader.matrix("token_embd.weight", c.d_model, c.n_vocab));
  w.head =
      loader.has("output.weight") ? TRY(loader.matrix("output.weight", c.d_model, c.n_vocab)) : w.embedding;
  if (c.family == Family::kQwen4Exp) {
    w.final_streams.norm = TRY(loader.vector("output_hc_norm.weight", c.wide()));
    w.final_streams.down = TRY(loader.matrix("output_hc_down.weight", c.wide(), c.streams.low_rank));
    w.final_streams.up = TRY(loader.matrix("output_hc_up.weight", c.streams.low_rank, c.wide()));
  } else {
    w.final_norm = TRY(loader.vector("output_norm.weight", c.d_model));
  }
  for (int i = 0; i < c.n_blocks; ++i) {
    BlockLoader block(loader, c, i);
    w.blocks.push_back(TRY(block.load(c.mixers[i], c.block_cells[i] != 0, c.ngram.block == i)));
    if (c.ffn.n_experts > 0) w.experts.push_back(block.planes());
  }
  if (mtp != nullptr) {
    WeightLoader head_loader(*mtp, w.copies_.draft, w, budget);
    w.mtp = TRY(load_mtp(head_loader, c, w.experts));
  } else if (c.n_mtp_blocks > 0) {
    WeightLoader head_loader(trunk, w.copies_.draft, w, budget);
    w.mtp = TRY(load_mtp(head_loader, c, w.experts));
  }
  // Moving the deque keeps its elements where they are; the views stay valid.
  return w;
}

std::string Weights::find_non_finite(const GgufFile& file) {
  std::vector<float> row;
  for (const TensorInfo& tensor : file.tensors()) {
    if (find_codec(tensor.type) == nullptr) continue;
    const auto n = static_cast<int64_t>(tensor.ne[0]);
    row.resize(n);
    const std::byte* data = file.bytes(tensor).data();
    for (uint64_t r = 0; r < tensor.n_rows(); ++r) {
      decode_row(tensor.type, data + r * row_bytes(tensor.type, n), n, row.data());
      if (!std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); })) return tensor.name;
    }
  }
  return {};
}

}  // namespace forebay
