/// What the gated-delta layers ran on, token by token: how much of an older state is left, and how a change
/// of that state travels on. Keys are kept in f16: 2 bytes per value, 256 for a key head of 128.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"
#include "model/recurrence_observer.h"

namespace forebay {

/// Confined. Follows one sequence: rows that come at a cell it has already seen replace what was from there
/// on.
class RecurrenceLog : public RecurrenceObserver {
 public:
  enum class Keep {
    kDecays,      // enough to say what is forgotten
    kEverything,  // and the keys and betas, to transport
  };
  RecurrenceLog(const ModelConfig& config, Keep keep);

  void observe(int block, int64_t first_cell, TensorView<const float> k_TK, TensorView<const float> decay_TH,
               TensorView<const float> beta_TH) override;

  /// Whether every gated-delta block's cells [first, end) are there.
  bool covers(int64_t first, int64_t end) const;
  bool has_keys() const { return keep_ == Keep::kEverything; }
  /// Forgets the cells from n_cells on.
  void truncate(int64_t n_cells);
  void clear();
  uint64_t bytes() const;
  /// What one cell takes, of all blocks.
  static uint64_t bytes_per_cell(const ModelConfig& config, Keep keep);

  /// Cells [first, end) as a log of their own, which begins at cell `at`: they were moved there. They must be
  /// covered.
  RecurrenceLog moved(int64_t first, int64_t end, int64_t at) const;
  /// The cells of a log that begins where this one ends.
  void append(const RecurrenceLog& next);

  /// Of every value head of a gated-delta block: the sum of log g over the covered cells [first, end), what
  /// the state at `first` was multiplied with, in nats. -infinity when it was wiped out.
  std::vector<double> sum_log_decay(int block, int64_t first, int64_t end) const;

  // One covered cell of a gated-delta block.
  std::span<const uint16_t> keys_f16(int block, int64_t cell) const;  // [n_k_heads * k_dim]
  std::span<const float> decays(int block, int64_t cell) const;       // [n_v_heads]
  std::span<const float> betas(int block, int64_t cell) const;        // [n_v_heads]

 private:
  RecurrenceLog() = default;

  struct Rows {
    int64_t first_cell = 0;
    int64_t n_cells = 0;
    std::vector<uint16_t> keys;
    std::vector<float> decays, betas;

    int64_t end() const { return first_cell + n_cells; }
  };
  void truncate(Rows& rows, int64_t n_cells) const;

  Keep keep_ = Keep::kDecays;
  int64_t key_width_ = 0;
  int64_t n_heads_ = 0;
  std::vector<bool> recurrent_;  // per trunk block
  std::vector<Rows> blocks_;
};

}  // namespace forebay
