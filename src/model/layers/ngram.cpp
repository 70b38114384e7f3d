#include <algorithm>
#include <cmath>

#include "core/mapped_memory.h"
#include "kernels/activation.h"
#include "kernels/causal_conv.h"
#include "kernels/decode_row.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "model/layers/layers.h"

namespace forebay {
namespace {

/// sign(g) sqrt(max(|g|, 1e-6)); sign(0) = 0.
float signed_root(float g) {
  if (g == 0.0f) return 0.0f;
  return std::copysign(std::sqrt(std::max(std::fabs(g), 1e-6f)), g);
}

/// Calls visit(t, head, row id) for every position of the part and every hash head.
template <typename Visit>
void for_each_row(LayerContext& lc, const Batch::Part& part, Visit visit) {
  const NgramConfig& n = lc.config.ngram;
  // The tokens before this part and its own, oldest first.
  std::vector<int32_t>& tokens = lc.scratch.ngram_tokens;
  tokens.assign(part.state->token_tail().begin(), part.state->token_tail().end());
  const size_t before = tokens.size();
  tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
  std::vector<int32_t>& history = lc.scratch.ngram_history;
  std::vector<int64_t>& ids = lc.scratch.ngram_ids;
  ids.resize(n.n_heads());
  for (int64_t t = 0; t < part.n_rows; ++t) {
    history.clear();
    for (int64_t i = static_cast<int64_t>(before) + t;
         i >= 0 && static_cast<int>(history.size()) < n.ngram_size; --i)
      history.push_back(tokens[i]);
    ngram_row_ids(n, history, ids.data());
    for (int h = 0; h < n.n_heads(); ++h) visit(t, h, ids[h]);
  }
}

/// Embeddings of the part's n-grams: for every position, one table row per hash head, side by side.
void gather_rows(LayerContext& lc, const Batch::Part& part, const MatrixView& table, TensorView<float> out) {
  const NgramConfig& n = lc.config.ngram;
  const DecodeFn decode = find_decoder(table.type, lc.kernels.isa());
  for_each_row(lc, part, [&](int64_t t, int h, int64_t row) {
    decode(table.row(row), n.row_width, out.row(part.first_row + t) + h * n.row_width);
  });
}

}  // namespace

void ngram_row_ids(const NgramConfig& config, std::span<const int32_t> history, int64_t* rows) {
  // Walking back, an eos (or the sequence start) makes itself and everything older read as eos. The current
  // token being eos does not cut its own context.
  uint64_t hash = 0;
  bool cut = false;
  for (int i = 0; i < config.ngram_size; ++i) {
    uint64_t token = static_cast<uint64_t>(config.eos);
    if (!cut && i < static_cast<int>(history.size())) token = static_cast<uint64_t>(history[i]);
    if (i > 0 && token == static_cast<uint64_t>(config.eos)) cut = true;
    hash ^= token * config.multipliers[i];
    if (i == 0) continue;  // bigrams are the shortest
    for (int h = (i - 1) * config.heads_per_ngram; h < i * config.heads_per_ngram; ++h)
      rows[h] = static_cast<int64_t>(hash % config.head_sizes[h] + config.head_offsets[h]);
  }
}

bool is_large(const NgramWeights& w) {
  constexpr int64_t kSmallTable = int64_t{256} << 20;
  return w.table.n_rows * w.table.row_stride_bytes >= kSmallTable;
}

void ngram_read_ahead(LayerContext& lc, const Batch& batch, const NgramWeights& w) {
  if (!is_large(w)) return;
  for (const Batch::Part& part : batch.parts)
    for_each_row(lc, part, [&](int64_t, int, int64_t row) {
      const std::span<const std::byte> bytes(w.table.row(row), static_cast<size_t>(w.table.row_stride_bytes));
      advise(bytes, MapAdvice::kWillNeed);
      lc.scratch.ngram_pages.use(bytes);
    });
}

void ngram_injection(LayerContext& lc, const Batch& batch, const NgramWeights& w, TensorView<float> streams) {
  KernelContext& kernels = lc.kernels;
  const ModelConfig& c = lc.config;
  const int H = c.streams.n_streams;
  const int64_t D = c.d_model;
  const int64_t T = batch.n_rows;
  Scratch& s = lc.scratch;
  const TensorView<float> embedded = s.ngram_rows.slice_rows(0, T);
  for (const Batch::Part& part : batch.parts) gather_rows(lc, part, w.table, embedded);

  const auto by_stream = [&](TensorView<float> wide) { return TensorView<float>(wide.data, T * H, D); };
  const TensorView<float> keys = s.gate_TW.slice_rows(0, T);
  const TensorView<float> queries = s.normed_TW.slice_rows(0, T);
  const TensorView<float> value = s.ngram_value.slice_rows(0, T);
  matmul(kernels, w.key, embedded, keys);
  rms_norm(kernels, by_stream(keys), w.norm_key, c.rms_eps, by_stream(keys));
  rms_norm(kernels, by_stream(streams), w.norm_query, c.rms_eps, by_stream(queries));
  matmul(kernels, w.value, embedded, value);

  const TensorView<float> out = s.ngram_out_TW.slice_rows(0, T);
  const double scale = 1.0 / std::sqrt(static_cast<double>(D));
  kernels.pool().parallel_for(T * H, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* key = keys.data + r * D;
      const float* query = queries.data + r * D;
      double dot = 0;
      for (int64_t d = 0; d < D; ++d) dot += static_cast<double>(key[d]) * query[d];
      const float gate = sigmoid(signed_root(static_cast<float>(dot * scale)));
      const float* v = value.row(r / H);
      for (int64_t d = 0; d < D; ++d) out.data[r * D + d] = gate * v[d];
    }
  });

  // What enters the convolution is the normed injection; the injection itself is added besides.
  const TensorView<float> normed = queries;
  rms_norm(kernels, by_stream(out), w.norm_conv, c.rms_eps, by_stream(normed));
  const TensorView<float> conv = s.ngram_conv_TW.slice_rows(0, T);
  const TensorView<const float> taps(w.conv.data(), c.ngram.conv_kernel, c.wide());
  for (const Batch::Part& part : batch.parts) {
    const TensorView<float> history(part.state->ngram_conv().data(), c.ngram.history_rows(), c.wide());
    const TensorView<float> inputs = normed.slice_rows(part.first_row, part.n_rows);
    if (WindowUndo* undo = part.state->undo()) undo->record_ngram(part.state->ngram_conv(), inputs);
    causal_conv_silu(kernels, inputs, history, taps, c.ngram.ngram_size,
                     conv.slice_rows(part.first_row, part.n_rows));
    push_history(inputs, history);
  }
  add(kernels, out, streams);
  add(kernels, conv, streams);
  s.ngram_pages.trim([](std::span<const std::byte> page) { advise(page, MapAdvice::kGiveUp); });
}

}  // namespace forebay
