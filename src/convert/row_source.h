/// The rows of one output tensor, made from checkpoint tensors on demand.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "convert/checkpoint.h"

namespace forebay::convert {

/// A recipe: which rows of which tensors, in which order of columns, changed how. Thread-safe to read.
class RowSource {
 public:
  /// Rows as they are.
  explicit RowSource(WeightRows rows) : RowSource(std::vector{rows}) {}
  /// The rows of several tensors of one width, one after another.
  explicit RowSource(std::vector<WeightRows> parts);
  /// Row i of `left`, then row i of `right`.
  static RowSource side_by_side(WeightRows left, WeightRows right);

  /// Output row r is row map(r) of what was there; there are n_rows of them.
  RowSource with_rows(uint64_t n_rows, std::function<uint64_t(uint64_t)> map) &&;
  /// Columns in runs of `run` values: output run i is run order[i] of what was there.
  RowSource with_column_runs(uint64_t run, std::vector<uint32_t> order) &&;
  RowSource plus_one() &&;   // x + 1
  RowSource minus_exp() &&;  // -e^x

  uint64_t n_rows() const { return n_rows_; }
  uint64_t n_columns() const { return n_columns_; }
  bool is_f16() const { return parts_[0].is_f16(); }
  Result<void> read_row(uint64_t row, std::span<float> out) const;

  // The other way, for who writes a converted row back.
  /// A run of an output row: `n` values from `column` on are those of the tensor `name` from element `first`
  /// on.
  struct Piece {
    std::string_view name;
    uint64_t first = 0, column = 0, n = 0;
  };
  /// Where output row `row` comes from; valid while the checkpoint lives.
  std::vector<Piece> pieces(uint64_t row) const;
  /// Makes values of an output row those of the checkpoint again: x - 1, log(-x).
  void undo_change(std::span<float> values) const;

 private:
  enum class Change { kNone, kPlusOne, kMinusExp };

  void add_pieces(uint64_t row, uint64_t from, uint64_t to, uint64_t n, std::vector<Piece>& pieces) const;
  Result<void> read_columns(uint64_t row, uint64_t column, std::span<float> out) const;

  std::vector<WeightRows> parts_;
  std::vector<uint64_t> part_ends_;  // rows up to the end of each part
  bool side_by_side_ = false;
  uint64_t n_rows_ = 0, n_columns_ = 0;
  std::function<uint64_t(uint64_t)> row_map_;
  uint64_t run_ = 0;
  std::vector<uint32_t> run_order_;
  Change change_ = Change::kNone;
};

}  // namespace forebay::convert
