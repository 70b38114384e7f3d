#include "model/recurrence_log.h"

#include <algorithm>
#include <cmath>

#include "core/ensure.h"
#include "tensor/half.h"

namespace forebay {

RecurrenceLog::RecurrenceLog(const ModelConfig& config, Keep keep)
    : keep_(keep),
      key_width_(config.gated_delta.key_width()),
      n_heads_(config.gated_delta.shape.n_v_heads),
      blocks_(config.n_blocks) {
  for (MixerKind mixer : config.mixers) recurrent_.push_back(mixer == MixerKind::kGatedDelta);
}

void RecurrenceLog::observe(int block, int64_t first_cell, TensorView<const float> k,
                            TensorView<const float> decay, TensorView<const float> beta) {
  Rows& rows = blocks_[block];
  if (first_cell < rows.first_cell || first_cell > rows.end())
    rows = {.first_cell = first_cell, .n_cells = 0, .keys = {}, .decays = {}, .betas = {}};
  truncate(rows, first_cell);
  for (int64_t t = 0; t < decay.rows; ++t) {
    rows.decays.insert(rows.decays.end(), decay.row(t), decay.row(t) + n_heads_);
    if (keep_ == Keep::kDecays) continue;
    rows.betas.insert(rows.betas.end(), beta.row(t), beta.row(t) + n_heads_);
    for (int64_t i = 0; i < key_width_; ++i) rows.keys.push_back(f16_from_f32(k.row(t)[i]));
  }
  rows.n_cells += decay.rows;
}

bool RecurrenceLog::covers(int64_t first, int64_t end) const {
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (recurrent_[i] && (blocks_[i].first_cell > first || blocks_[i].end() < end)) return false;
  return true;
}

void RecurrenceLog::truncate(Rows& rows, int64_t n_cells) const {
  rows.n_cells = std::clamp<int64_t>(n_cells - rows.first_cell, 0, rows.n_cells);
  rows.decays.resize(rows.n_cells * n_heads_);
  if (keep_ == Keep::kDecays) return;
  rows.betas.resize(rows.n_cells * n_heads_);
  rows.keys.resize(rows.n_cells * key_width_);
}

void RecurrenceLog::truncate(int64_t n_cells) {
  for (Rows& rows : blocks_) truncate(rows, n_cells);
}

void RecurrenceLog::clear() {
  std::fill(blocks_.begin(), blocks_.end(), Rows{});
}

uint64_t RecurrenceLog::bytes() const {
  uint64_t n = 0;
  for (const Rows& rows : blocks_)
    n += rows.keys.size() * sizeof(uint16_t) + (rows.decays.size() + rows.betas.size()) * sizeof(float);
  return n;
}

uint64_t RecurrenceLog::bytes_per_cell(const ModelConfig& config, Keep keep) {
  const GatedDeltaConfig& g = config.gated_delta;
  const auto n_blocks =
      static_cast<uint64_t>(std::count(config.mixers.begin(), config.mixers.end(), MixerKind::kGatedDelta));
  const uint64_t decays = static_cast<uint64_t>(g.shape.n_v_heads) * sizeof(float);
  const uint64_t keys = static_cast<uint64_t>(g.key_width()) * sizeof(uint16_t);
  return n_blocks * (keep == Keep::kDecays ? decays : 2 * decays + keys);
}

RecurrenceLog RecurrenceLog::moved(int64_t first, int64_t end, int64_t at) const {
  ENSURE(covers(first, end), "cells of a recurrence log that are not there");
  RecurrenceLog out;
  out.keep_ = keep_;
  out.key_width_ = key_width_;
  out.n_heads_ = n_heads_;
  out.recurrent_ = recurrent_;
  out.blocks_.resize(blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (!recurrent_[i]) continue;
    const Rows& from = blocks_[i];
    const auto part = [&](const auto& all, int64_t width) {
      const auto begin = all.begin() + (all.empty() ? 0 : (first - from.first_cell) * width);
      return std::decay_t<decltype(all)>(begin, begin + (all.empty() ? 0 : (end - first) * width));
    };
    out.blocks_[i] = {at, end - first, part(from.keys, key_width_), part(from.decays, n_heads_),
                      part(from.betas, n_heads_)};
  }
  return out;
}

void RecurrenceLog::append(const RecurrenceLog& next) {
  ENSURE(next.keep_ == keep_ && next.blocks_.size() == blocks_.size(), "recurrence logs of different models");
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (!recurrent_[i]) continue;
    Rows& to = blocks_[i];
    const Rows& from = next.blocks_[i];
    ENSURE(to.end() == from.first_cell, "a recurrence log with a gap");
    to.n_cells += from.n_cells;
    to.keys.insert(to.keys.end(), from.keys.begin(), from.keys.end());
    to.decays.insert(to.decays.end(), from.decays.begin(), from.decays.end());
    to.betas.insert(to.betas.end(), from.betas.begin(), from.betas.end());
  }
}

std::vector<double> RecurrenceLog::sum_log_decay(int block, int64_t first, int64_t end) const {
  std::vector<double> sums(n_heads_);
  for (int64_t cell = first; cell < end; ++cell) {
    const std::span<const float> g = decays(block, cell);
    for (int64_t h = 0; h < n_heads_; ++h) sums[h] += std::log(static_cast<double>(g[h]));
  }
  return sums;
}

std::span<const uint16_t> RecurrenceLog::keys_f16(int block, int64_t cell) const {
  return std::span(blocks_[block].keys).subspan((cell - blocks_[block].first_cell) * key_width_, key_width_);
}
std::span<const float> RecurrenceLog::decays(int block, int64_t cell) const {
  return std::span(blocks_[block].decays).subspan((cell - blocks_[block].first_cell) * n_heads_, n_heads_);
}
std::span<const float> RecurrenceLog::betas(int block, int64_t cell) const {
  return std::span(blocks_[block].betas).subspan((cell - blocks_[block].first_cell) * n_heads_, n_heads_);
}

}  // namespace forebay
