#include "model/state.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace forebay {
namespace {

/// Hands out consecutive pieces of a buffer, or only counts them when there is none.
class Carver {
 public:
  explicit Carver(std::span<float> memory) : memory_(memory) {}
  std::span<float> take(int64_t n) {
    const size_t at = used_;
    used_ += static_cast<size_t>(n);
    return memory_.empty() ? std::span<float>() : memory_.subspan(at, static_cast<size_t>(n));
  }
  size_t used() const { return used_; }

 private:
  std::span<float> memory_;
  size_t used_ = 0;
};

struct Parts {
  std::vector<AttentionState> attention;
  std::vector<GatedDeltaState> gated_delta;
  AttentionState mtp;
  std::span<float> ngram_conv;
};

int64_t kv_width(const ModelConfig& c) {
  return static_cast<int64_t>(c.attention.shape.n_kv_heads) * c.attention.shape.head_dim;
}

/// The layout of both buffers, in one place: counting and carving run the same lines.
Parts lay_out(const ModelConfig& c, int64_t context, bool with_mtp, Carver& fixed, Carver& rows) {
  Parts p;
  p.attention.resize(c.n_blocks);
  p.gated_delta.resize(c.n_blocks);
  for (int i = 0; i < c.n_blocks; ++i) {
    if (c.mixers[i] == MixerKind::kGatedDelta) {
      const GatedDeltaConfig& g = c.gated_delta;
      p.gated_delta[i].matrix =
          fixed.take(static_cast<int64_t>(g.shape.n_v_heads) * g.shape.k_dim * g.shape.v_dim);
      p.gated_delta[i].conv = fixed.take(static_cast<int64_t>(g.conv_kernel - 1) * g.conv_channels());
      continue;
    }
    AttentionState& a = p.attention[i];
    a.keys = rows.take(context * kv_width(c));
    a.values = rows.take(context * kv_width(c));
    if (c.block_cells[i] != 0) {
      a.pooled = rows.take(context / c.block_cells[i] * c.indexer.head_dim);
      a.raw = fixed.take(AttentionState::kRawRing * c.indexer.head_dim);
    }
  }
  if (with_mtp) {
    p.mtp.keys = rows.take(context * kv_width(c));
    p.mtp.values = rows.take(context * kv_width(c));
  }
  if (c.ngram.block >= 0) p.ngram_conv = fixed.take(static_cast<int64_t>(c.ngram.history_rows()) * c.wide());
  return p;
}

}  // namespace

StateSize state_size(const ModelConfig& c, bool with_mtp) {
  Carver fixed({}), rows({});
  constexpr int64_t kCells = 4096;  // divides by every block size in use
  lay_out(c, kCells, with_mtp, fixed, rows);
  return {fixed.used() * sizeof(float), rows.used() * sizeof(float) / kCells};
}

Result<SequenceState> SequenceState::create(const ModelConfig& c, int64_t context, bool with_mtp,
                                            MemoryBudget& budget) {
  if (context < 1)
    return Error{Code::kInvalidArgument, fmt::format("context: {}, expected at least 1 token", context)};
  Carver fixed_size({}), rows_size({});
  lay_out(c, context, with_mtp, fixed_size, rows_size);

  SequenceState s;
  s.context_ = context;
  s.fixed_buffer_ = TRY(Buffer::allocate(budget, fixed_size.used() * sizeof(float), "recurrent state"));
  s.rows_buffer_ = TRY(Buffer::allocate(budget, rows_size.used() * sizeof(float),
                                        fmt::format("K/V rows for {} tokens", context)));
  s.fixed_ = s.fixed_buffer_.as<float>();
  Carver fixed(s.fixed_), rows(s.rows_buffer_.as<float>());
  Parts p = lay_out(c, context, with_mtp, fixed, rows);
  s.attention_ = std::move(p.attention);
  s.gated_delta_ = std::move(p.gated_delta);
  s.mtp_ = p.mtp;
  s.ngram_conv_ = p.ngram_conv;
  s.tail_length_ = c.ngram.block >= 0 ? c.ngram.ngram_size - 1 : 0;
  return s;
}

void SequenceState::advance(std::span<const int32_t> tokens) {
  n_cells_ += static_cast<int64_t>(tokens.size());
  for (int32_t token : tokens) token_tail_.push_back(token);
  if (token_tail_.size() > tail_length_)
    token_tail_.erase(token_tail_.begin(), token_tail_.end() - tail_length_);
}

Snapshot SequenceState::snapshot() const {
  return {n_cells_, n_mtp_cells_, token_tail_, std::vector<float>(fixed_.begin(), fixed_.end())};
}

Result<void> SequenceState::restore(const Snapshot& s) {
  if (s.fixed.size() != fixed_.size())
    return Error{Code::kInvalidArgument, fmt::format("snapshot: {} recurrent values, this model has {}",
                                                     s.fixed.size(), fixed_.size())};
  if (s.n_cells > n_cells_)
    return Error{Code::kInvalidArgument,
                 fmt::format("snapshot: taken at cell {}, the sequence has {}", s.n_cells, n_cells_)};
  std::copy(s.fixed.begin(), s.fixed.end(), fixed_.begin());
  token_tail_ = s.token_tail;
  n_cells_ = s.n_cells;
  n_mtp_cells_ = std::min(s.n_mtp_cells, n_mtp_cells_);
  return {};
}

void SequenceState::reset() {
  std::fill(fixed_.begin(), fixed_.end(), 0.0f);
  token_tail_.clear();
  n_cells_ = 0;
  n_mtp_cells_ = 0;
}

}  // namespace forebay
