#include "model/state.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/ensure.h"

namespace forebay {
namespace {

/// Hands out consecutive named pieces of memory, or only counts them when there is none.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}

  /// A piece that is all there from the start.
  std::span<float> take_fixed(std::string name, int64_t n) {
    return take<float>(std::move(name), n, 1, 0, false, sizeof(float));
  }
  /// n_rows rows of `width` values, one per `cells_per_row` cells. Such pieces start on cache lines.
  template <typename T>
  std::span<T> take_rows(std::string name, int64_t width, int64_t n_rows, int64_t cells_per_row,
                         bool draft = false) {
    return take<T>(std::move(name), width, n_rows, cells_per_row, draft, 64);
  }
  /// No section: what is made again is not saved.
  BlockCodes take_codes(int dim, int64_t n_blocks) {
    BlockCodes codes{.tiles = memory_ == nullptr ? nullptr : memory_ + used_, .dim = dim};
    used_ += static_cast<uint64_t>(BlockCodes::n_tiles(n_blocks) * BlockCodes::tile_bytes(dim));
    return codes;
  }
  uint64_t used() const { return used_; }
  std::vector<StateSection> sections;

 private:
  template <typename T>
  std::span<T> take(std::string name, int64_t width, int64_t n_rows, int64_t cells_per_row, bool draft,
                    uint64_t alignment) {
    const uint64_t row_bytes = static_cast<uint64_t>(width) * sizeof(T);
    const uint64_t bytes =
        (row_bytes * static_cast<uint64_t>(n_rows) + alignment - 1) / alignment * alignment;
    std::byte* at = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += bytes;
    sections.push_back({std::move(name),
                        at == nullptr ? std::span<std::byte>() : std::span(at, static_cast<size_t>(bytes)),
                        row_bytes, cells_per_row, draft});
    if (at == nullptr) return {};
    return {reinterpret_cast<T*>(at), static_cast<size_t>(width * n_rows)};
  }

  std::byte* memory_;
  uint64_t used_ = 0;
};

struct Parts {
  std::vector<AttentionState> attention;
  std::vector<GatedDeltaState> gated_delta;
  AttentionState mtp;
  std::span<float> ngram_conv;
};

KvRows take_kv(const ModelConfig& c, KvType kv, const std::string& name, int64_t context, bool draft,
               Carver& memory) {
  KvRows rows{{kv, c.attention.shape.n_kv_heads, c.attention.shape.head_dim}};
  rows.values = memory.take_rows<std::byte>(name, rows.value_bytes(), context, 1, draft).data();
  if (kv == KvType::kInt8)
    rows.scales = memory.take_rows<uint16_t>(name + ".scales", rows.n_scales(), context, 1, draft).data();
  return rows;
}

/// The layout of all memory, in one place: counting and carving run the same lines.
Parts lay_out(const ModelConfig& c, int64_t context, bool with_mtp, KvType kv, Carver& fixed, Carver& rows,
              Carver& derived) {
  Parts p;
  p.attention.resize(c.n_blocks);
  p.gated_delta.resize(c.n_blocks);
  for (int i = 0; i < c.n_blocks; ++i) {
    const auto named = [&](std::string_view part) { return fmt::format("blk.{}.{}", i, part); };
    if (c.mixers[i] == MixerKind::kGatedDelta) {
      const GatedDeltaConfig& g = c.gated_delta;
      p.gated_delta[i].matrix = fixed.take_fixed(
          named("delta.matrix"), static_cast<int64_t>(g.shape.n_v_heads) * g.shape.k_dim * g.shape.v_dim);
      p.gated_delta[i].conv =
          fixed.take_fixed(named("delta.conv"), static_cast<int64_t>(g.conv_kernel - 1) * g.conv_channels());
      continue;
    }
    AttentionState& a = p.attention[i];
    a.keys = take_kv(c, kv, named("attn.keys"), context, false, rows);
    a.values = take_kv(c, kv, named("attn.values"), context, false, rows);
    if (const int64_t block_cells = c.block_cells[i]; block_cells != 0) {
      a.pooled = rows.take_rows<float>(named("index.pooled"), c.indexer.head_dim, context / block_cells,
                                       block_cells);
      a.raw = fixed.take_fixed(named("index.raw"), AttentionState::kRawRing * c.indexer.head_dim);
      if (c.indexer.head_dim <= BlockCodes::kMaxDim)
        a.codes = derived.take_codes(c.indexer.head_dim, context / block_cells);
    }
  }
  if (with_mtp) {
    p.mtp.keys = take_kv(c, kv, "draft.keys", context, /*draft=*/true, rows);
    p.mtp.values = take_kv(c, kv, "draft.values", context, /*draft=*/true, rows);
  }
  if (c.ngram.block >= 0)
    p.ngram_conv = fixed.take_fixed("ngram.conv", static_cast<int64_t>(c.ngram.history_rows()) * c.wide());
  return p;
}

}  // namespace

KvType usual_kv_type(const ModelConfig& c) {
  return c.indexer.block_cells != 0 ? KvType::kInt8 : KvType::kF32;
}

bool has_recurrent_state(const ModelConfig& c) {
  return c.ngram.block >= 0 || c.has_mixer(MixerKind::kGatedDelta);
}

StateSize state_size(const ModelConfig& c, bool with_mtp, KvType kv) {
  Carver fixed(nullptr), rows(nullptr), derived(nullptr);
  constexpr int64_t kCells = 4096;  // divides by every block size in use
  lay_out(c, kCells, with_mtp, kv, fixed, rows, derived);
  return {fixed.used(), (rows.used() + derived.used()) / kCells};
}

uint64_t state_row_bytes(const ModelConfig& c, int64_t context, bool with_mtp, KvType kv) {
  Carver fixed(nullptr), rows(nullptr), derived(nullptr);
  lay_out(c, context, with_mtp, kv, fixed, rows, derived);
  return rows.used() + derived.used();
}

Result<SequenceState> SequenceState::create(const ModelConfig& c, int64_t context, bool with_mtp, KvType kv,
                                            MemoryBudget& budget) {
  if (context < 1)
    return Error{Code::kInvalidArgument, fmt::format("context: {}, expected at least 1 token", context)};
  Carver fixed_size(nullptr), rows_size(nullptr), derived_size(nullptr);
  lay_out(c, context, with_mtp, kv, fixed_size, rows_size, derived_size);

  SequenceState s;
  s.context_ = context;
  s.fixed_buffer_ = TRY(Buffer::allocate(budget, fixed_size.used(), "recurrent state"));
  s.derived_bytes_ = derived_size.used();
  s.rows_buffer_ = TRY(Buffer::allocate(budget, rows_size.used() + derived_size.used(),
                                        fmt::format("K/V rows for {} tokens", context)));
  s.fixed_ = s.fixed_buffer_.as<float>();
  Carver fixed(s.fixed_buffer_.data()), rows(s.rows_buffer_.data());
  Carver derived(s.rows_buffer_.data() + rows_size.used());
  Parts p = lay_out(c, context, with_mtp, kv, fixed, rows, derived);
  s.attention_ = std::move(p.attention);
  s.gated_delta_ = std::move(p.gated_delta);
  s.mtp_ = p.mtp;
  s.ngram_conv_ = p.ngram_conv;
  s.tail_length_ = c.ngram.block >= 0 ? c.ngram.ngram_size - 1 : 0;
  s.recurrent_ = has_recurrent_state(c);
  s.sections_ = std::move(fixed.sections);
  s.sections_.insert(s.sections_.end(), std::make_move_iterator(rows.sections.begin()),
                     std::make_move_iterator(rows.sections.end()));
  return s;
}

void SequenceState::advance(std::span<const int32_t> tokens) {
  if (WindowUndo* log = undo())
    log->complete(tokens);
  else if (undo_ != nullptr)
    undo_->forget();
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
  if (undo_ != nullptr) undo_->forget();
  std::copy(s.fixed.begin(), s.fixed.end(), fixed_.begin());
  token_tail_ = s.token_tail;
  n_cells_ = s.n_cells;
  n_mtp_cells_ = std::min(s.n_mtp_cells, n_mtp_cells_);
  return {};
}

bool SequenceState::can_rewind(int64_t to) const {
  if (to < 0 || to > n_cells_) return false;
  if (to == n_cells_) return true;
  // A block that is cut open needs the raw keys of its cells before the cut.
  constexpr int64_t kLargestBlock = AttentionState::kRawRing / 2;
  const bool keys_there = n_cells_ - to <= AttentionState::kRawRing - kLargestBlock;
  const bool has_index =
      std::any_of(attention_.begin(), attention_.end(), [](const auto& a) { return !a.raw.empty(); });
  return !recurrent_ && (keys_there || !has_index);
}

Result<void> SequenceState::rewind(int64_t to) {
  if (!can_rewind(to))
    return Error{
        Code::kInvalidArgument,
        fmt::format("rewind to cell {}: the sequence has {} and memory that cannot be cut", to, n_cells_)};
  n_cells_ = to;
  n_mtp_cells_ = std::min(n_mtp_cells_, to);
  return {};
}

std::span<const std::byte> SequenceState::bytes_in(const Snapshot& s, const StateSection& section) const {
  const auto* first = reinterpret_cast<const std::byte*>(fixed_.data());
  const std::span<const std::byte> all = std::as_bytes(std::span(s.fixed));
  ENSURE(section.is_fixed() && all.size() == fixed_.size_bytes(), "a snapshot's piece of another state");
  return all.subspan(static_cast<size_t>(section.bytes.data() - first), section.bytes.size());
}

void SequenceState::adopt(std::span<const int32_t> tokens, int64_t n_mtp_cells) {
  if (undo_ != nullptr) undo_->forget();
  for (AttentionState& a : attention_) a.n_coded = 0;
  n_cells_ = static_cast<int64_t>(tokens.size());
  n_mtp_cells_ = n_mtp_cells;
  const size_t n_tail = std::min(tokens.size(), tail_length_);
  token_tail_.assign(tokens.end() - static_cast<ptrdiff_t>(n_tail), tokens.end());
}

Result<void> SequenceState::enable_undo(const ModelConfig& config, MemoryBudget& budget) {
  if (undo_ == nullptr) undo_ = TRY(WindowUndo::create(config, budget));
  return {};
}

void SequenceState::arm_undo() {
  ENSURE(undo_ != nullptr, "arm_undo before enable_undo");
  undo_->arm(*this);
}

Result<void> SequenceState::keep(KernelContext& ctx, const ModelConfig& config, int64_t n) {
  if (undo_ == nullptr || !undo_->is_complete() || n < 0 || n > undo_->n_rows())
    return Error{Code::kInvalidArgument,
                 fmt::format("keep {} tokens: the last window has {} that can be undone", n,
                             undo_ == nullptr ? 0 : undo_->n_rows())};
  const int64_t n_dropped = undo_->n_rows() - n;
  if (n_dropped > 0) {
    token_tail_ = undo_->cut(ctx, config, n, *this);
    n_cells_ -= n_dropped;
    n_mtp_cells_ = std::min(n_mtp_cells_, n_cells_);
    if (token_tail_.size() > tail_length_)
      token_tail_.erase(token_tail_.begin(), token_tail_.end() - static_cast<ptrdiff_t>(tail_length_));
  }
  undo_->forget();
  return {};
}

void SequenceState::reset() {
  if (undo_ != nullptr) undo_->forget();
  std::fill(fixed_.begin(), fixed_.end(), 0.0f);
  token_tail_.clear();
  n_cells_ = 0;
  n_mtp_cells_ = 0;
}

}  // namespace forebay
