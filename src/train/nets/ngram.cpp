#include "train/nets/ngram.h"

#include <cmath>
#include <vector>

#include "train/nets/causal_conv.h"

namespace forebay::train {
namespace {

constexpr int64_t kRowMultiple = 128;  // what published tables are padded to

}  // namespace

NgramParameters make_ngram_parameters(ParameterMaker& maker, const std::string& name,
                                      const ModelConfig& config) {
  const NgramConfig& n = config.ngram;
  const int64_t wide = config.wide(), width = n.width();
  const auto used = static_cast<int64_t>(n.head_offsets.back() + n.head_sizes.back());
  const int64_t rows = (used + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
  NgramParameters w;
  w.table =
      maker.make(name + ".ple_embedding.ngram_embedding.weight", {rows, n.row_width}, Init::matrix(width));
  w.key = maker.make(name + ".key_proj.weight", {wide, width}, Init::matrix(width));
  w.value = maker.make(name + ".value_proj.weight", {config.d_model, width}, Init::matrix(width));
  w.norm_key = maker.make(name + ".norm_key.weight", {wide}, Init::constant(0));
  w.norm_query = maker.make(name + ".norm_query.weight", {wide}, Init::constant(0));
  w.norm_conv = maker.make(name + ".norm_conv.weight", {wide}, Init::constant(0));
  const double reach = 1 / std::sqrt(static_cast<double>(n.conv_kernel));
  w.conv = maker.make(name + ".conv1d.weight", {wide, 1, n.conv_kernel}, Init::uniform(-reach, reach));
  return w;
}

torch::Tensor ngram_rows(const NgramConfig& config, const torch::Tensor& ids_BT) {
  const int64_t T = ids_BT.size(1);
  // Walking back, an eos (or the sequence's start) makes itself and everything older read as eos. Products
  // stay below 2^63, so signed numbers give the same remainders.
  torch::Tensor hash = ids_BT * static_cast<int64_t>(config.multipliers[0]);
  torch::Tensor cut;
  std::vector<torch::Tensor> rows;
  for (int64_t back = 1; back < config.ngram_size; ++back) {
    const int64_t kept = std::max<int64_t>(0, T - back);
    torch::Tensor token =
        torch::constant_pad_nd(ids_BT.narrow(1, 0, kept), {T - kept, 0}, static_cast<int64_t>(config.eos));
    if (cut.defined()) token = token.masked_fill(cut, config.eos);
    cut = token.eq(config.eos);
    hash = hash.bitwise_xor(token * static_cast<int64_t>(config.multipliers[static_cast<size_t>(back)]));
    for (int64_t h = (back - 1) * config.heads_per_ngram; h < back * config.heads_per_ngram; ++h)
      rows.push_back(hash.remainder(static_cast<int64_t>(config.head_sizes[static_cast<size_t>(h)])) +
                     static_cast<int64_t>(config.head_offsets[static_cast<size_t>(h)]));
  }
  return torch::stack(rows, -1);
}

torch::Tensor ngram_injection(const NgramParameters& w, const ModelConfig& config,
                              const torch::Tensor& ids_BT, const torch::Tensor& x_BTW, Precision precision) {
  const int64_t S = config.streams.n_streams, D = config.d_model;
  const auto normed = [&](const torch::Tensor& x, const torch::Tensor& norm) {
    return rms_norm(x.unflatten(-1, {S, D}), (norm + 1).view({S, D}), config.rms_eps);
  };
  const torch::Tensor embedded = torch::embedding(w.table, ngram_rows(config.ngram, ids_BT)).flatten(-2);
  const torch::Tensor keys = normed(linear(embedded, w.key, precision), w.norm_key);
  const torch::Tensor queries = normed(x_BTW, w.norm_query);
  const torch::Tensor dot = (keys * queries).sum(-1, true) / std::sqrt(static_cast<double>(D));
  const torch::Tensor gate = torch::sigmoid(dot.sign() * dot.abs().clamp_min(1e-6).sqrt());
  const torch::Tensor injected =
      (gate * linear(embedded, w.value, precision).unsqueeze(-2)).flatten(-2);  // [B, T, S * D]
  // What enters the filter is the normed injection; the injection itself is added besides.
  const torch::Tensor filtered =
      causal_conv_silu(normed(injected, w.norm_conv).flatten(-2), w.conv, config.ngram.ngram_size);
  return x_BTW + injected + filtered;
}

}  // namespace forebay::train
