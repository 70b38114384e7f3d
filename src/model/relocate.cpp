#include "model/relocate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

namespace forebay {
namespace {

/// Rows of `width` f32 values; memmove is right whichever way the two spans overlap.
void move_rows(std::span<float> rows, int64_t width, const CellMove& move) {
  std::memmove(rows.data() + (move.first + move.delta) * width, rows.data() + move.first * width,
               static_cast<size_t>(move.n * width) * sizeof(float));
}

void turn_rows(std::span<float> rows, int64_t width, int head_dim, const CellMove& move,
               const KeyTurn& turn) {
  float* row = rows.data() + (move.first + move.delta) * width;
  for (int64_t head = 0; head < move.n * width / head_dim; ++head) turn.apply(row + head * head_dim);
}

void move_kv(const KvRows& rows, const CellMove& move) {
  const std::span<const std::byte> values = rows.value_bytes_of(move.first, move.n);
  std::memmove(rows.value_bytes_of(move.first + move.delta, move.n).data(), values.data(), values.size());
  const std::span<const uint16_t> scales = rows.scales_of(move.first, move.n);
  if (!scales.empty())
    std::memmove(rows.scales_of(move.first + move.delta, move.n).data(), scales.data(), scales.size_bytes());
}

/// Only rotated dimensions, and of int8 rows those that share a scale with one, are rounded again.
void turn_kv(const KvRows& rows, int n_rot, const CellMove& move, const KeyTurn& turn) {
  std::vector<float> head(static_cast<size_t>(rows.head_dim));
  for (int64_t cell = move.first + move.delta; cell < move.first + move.delta + move.n; ++cell)
    for (int h = 0; h < rows.n_heads; ++h) {
      read_head(Isa::kReference, rows, cell, h, head.data());
      turn.apply(head.data());
      rewrite_head(rows, cell, h, n_rot, head.data());
    }
}

void move_keys_and_values(AttentionState& state, int n_rot, const CellMove& move, const KeyTurn& turn) {
  move_kv(state.keys, move);
  move_kv(state.values, move);
  turn_kv(state.keys, n_rot, move, turn);
}

void move_pooled(AttentionState& state, int block_cells, int dim, const CellMove& move, const KeyTurn& turn) {
  const int64_t first = (move.first + block_cells - 1) / block_cells;
  const int64_t end = (move.first + move.n) / block_cells;
  if (end <= first) return;
  const CellMove blocks{first, end - first, move.delta / block_cells};
  move_rows(state.pooled, dim, blocks);
  turn_rows(state.pooled, dim, dim, blocks, turn);
  state.n_coded = std::min(state.n_coded, blocks.first + blocks.delta);
}

}  // namespace

int64_t shift_granule(const ModelConfig& config) {
  int64_t granule = 1;
  for (int cells : config.block_cells)
    if (cells > 0) granule = std::lcm(granule, static_cast<int64_t>(cells));
  return granule;
}

KeyTurn::KeyTurn(const AttentionConfig& attention, int64_t delta) : pairs_(attention.rope_pairs) {
  for (int i = 0; i < attention.n_rot / 2; ++i) {
    const double angle =
        static_cast<double>(delta) * std::pow(attention.rope_theta, -2.0 * i / attention.n_rot);
    cos_.push_back(std::cos(angle));
    sin_.push_back(std::sin(angle));
  }
}

void KeyTurn::apply(float* head) const {
  const size_t half = cos_.size();
  for (size_t i = 0; i < half; ++i) {
    float& a = pairs_ == RopePairs::kHalves ? head[i] : head[2 * i];
    float& b = pairs_ == RopePairs::kHalves ? head[i + half] : head[2 * i + 1];
    const double x = a, y = b;
    a = static_cast<float>(x * cos_[i] - y * sin_[i]);
    b = static_cast<float>(y * cos_[i] + x * sin_[i]);
  }
}

Result<void> relocate_rows(SequenceState& state, const ModelConfig& config, const CellMove& move) {
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  const int64_t granule = shift_granule(config);
  if (move.first < 0 || move.n < 0 || move.first + move.n > state.n_cells())
    return refuse(fmt::format("move: cells {} to {}, the sequence has {}", move.first, move.first + move.n,
                              state.n_cells()));
  if (move.first + move.delta < 0 || move.first + move.n + move.delta > state.context())
    return refuse(fmt::format("move: cells {} to {} by {}, the context holds {}", move.first,
                              move.first + move.n, move.delta, state.context()));
  if (move.delta % granule != 0)
    return refuse(fmt::format("move: by {} cells, expected a multiple of {}", move.delta, granule));
  if (move.delta == 0 || move.n == 0) return {};

  const KeyTurn turn(config.attention, move.delta);
  for (int i = 0; i < config.n_blocks; ++i) {
    if (config.mixers[i] != MixerKind::kAttention) continue;
    AttentionState& layer = state.attention(i);
    move_keys_and_values(layer, config.attention.n_rot, move, turn);
    if (config.block_cells[i] > 0)
      move_pooled(layer, config.block_cells[i], config.indexer.head_dim, move, turn);
  }
  if (state.has_mtp()) {
    CellMove drafts = move;
    drafts.n = std::min(move.n, state.n_mtp_cells() - move.first);
    if (drafts.n > 0) move_keys_and_values(state.mtp(), config.attention.n_rot, drafts, turn);
  }
  return {};
}

}  // namespace forebay
