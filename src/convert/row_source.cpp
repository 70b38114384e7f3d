#include "convert/row_source.h"

#include <algorithm>
#include <cmath>

#include "convert/numpy_exp.h"
#include "core/ensure.h"

namespace forebay::convert {

RowSource::RowSource(std::vector<WeightRows> parts) : parts_(std::move(parts)) {
  ENSURE(!parts_.empty(), "a row source without tensors");
  n_columns_ = parts_[0].n_columns;
  for (const WeightRows& part : parts_) {
    ENSURE(part.n_columns == n_columns_, "stacked tensors of different widths");
    part_ends_.push_back(n_rows_ += part.n_rows);
  }
}

RowSource RowSource::side_by_side(WeightRows left, WeightRows right) {
  ENSURE(left.n_rows == right.n_rows, "tensors of different heights side by side");
  RowSource source(left);
  source.parts_.push_back(right);
  source.side_by_side_ = true;
  source.n_columns_ += right.n_columns;
  return source;
}

RowSource RowSource::with_rows(uint64_t n_rows, std::function<uint64_t(uint64_t)> map) && {
  n_rows_ = n_rows;
  row_map_ = std::move(map);
  return std::move(*this);
}

RowSource RowSource::with_column_runs(uint64_t run, std::vector<uint32_t> order) && {
  ENSURE(run * order.size() == n_columns_, "column runs that do not fill the row");
  run_ = run;
  run_order_ = std::move(order);
  return std::move(*this);
}

RowSource RowSource::plus_one() && {
  change_ = Change::kPlusOne;
  return std::move(*this);
}

RowSource RowSource::minus_exp() && {
  change_ = Change::kMinusExp;
  return std::move(*this);
}

Result<void> RowSource::read_columns(uint64_t row, uint64_t column, std::span<float> out) const {
  if (side_by_side_) {
    const uint64_t left = parts_[0].n_columns;
    TRY(parts_[0].read(row, column, out.first(left)));
    return parts_[1].read(row, column, out.subspan(left));
  }
  const size_t part = std::ranges::upper_bound(part_ends_, row) - part_ends_.begin();
  const uint64_t first_row = part == 0 ? 0 : part_ends_[part - 1];
  return parts_[part].read(row - first_row, column, out);
}

Result<void> RowSource::read_row(uint64_t row, std::span<float> out) const {
  const uint64_t source_row = row_map_ ? row_map_(row) : row;
  if (run_order_.empty()) {
    TRY(read_columns(source_row, 0, out));
  } else {
    for (size_t i = 0; i < run_order_.size(); ++i)
      TRY(read_columns(source_row, run_order_[i] * run_, out.subspan(i * run_, run_)));
  }
  if (change_ == Change::kPlusOne)
    for (float& value : out) value += 1.0f;
  if (change_ == Change::kMinusExp)
    for (float& value : out) value = -numpy_exp(value);
  return {};
}

void RowSource::add_pieces(uint64_t row, uint64_t from, uint64_t to, uint64_t n,
                           std::vector<Piece>& pieces) const {
  const size_t part = std::ranges::upper_bound(part_ends_, row) - part_ends_.begin();
  const uint64_t first_row = part == 0 ? 0 : part_ends_[part - 1];
  pieces.push_back({parts_[part].name(), (row - first_row) * parts_[part].n_columns + from, to, n});
}

std::vector<RowSource::Piece> RowSource::pieces(uint64_t row) const {
  const uint64_t source_row = row_map_ ? row_map_(row) : row;
  std::vector<Piece> pieces;
  if (side_by_side_) {
    const uint64_t left = parts_[0].n_columns, right = parts_[1].n_columns;
    pieces.push_back({parts_[0].name(), source_row * left, 0, left});
    pieces.push_back({parts_[1].name(), source_row * right, left, right});
  } else if (run_order_.empty()) {
    add_pieces(source_row, 0, 0, n_columns_, pieces);
  } else {
    for (size_t i = 0; i < run_order_.size(); ++i)
      add_pieces(source_row, run_order_[i] * run_, i * run_, run_, pieces);
  }
  return pieces;
}

void RowSource::undo_change(std::span<float> values) const {
  if (change_ == Change::kPlusOne)
    for (float& value : values) value -= 1.0f;
  if (change_ == Change::kMinusExp)
    for (float& value : values) value = std::log(-value);
}

}  // namespace forebay::convert
