#include "tensor/view.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(TensorView, SlicesShareTheMatrix) {
  std::vector<float> values(6 * 5);
  std::iota(values.begin(), values.end(), 0.0f);
  const TensorView<float> matrix(values.data(), 6, 5);
  const auto rows = matrix.slice_rows(2, 3);
  EXPECT_EQ(rows.rows, 3);
  EXPECT_EQ(rows.row(1)[4], 3 * 5 + 4);
  const auto part = rows.slice_cols(1, 2);
  EXPECT_EQ(part.cols, 2);
  EXPECT_EQ(part.stride, 5);
  EXPECT_EQ(part.row(2)[0], 4 * 5 + 1);
  part.row(0)[0] = -1;
  EXPECT_EQ(values[2 * 5 + 1], -1);
  const TensorView<const float> read_only = part;
  EXPECT_EQ(read_only.row(0)[0], -1);
  EXPECT_EQ(read_only.stride, 5);
}

TEST(MatrixView, RowsAreAStrideApart) {
  std::vector<std::byte> bytes(3 * row_bytes(DType::kQ8_0, 64));
  const MatrixView matrix{
      .data = bytes.data(), .type = DType::kQ8_0, .n_rows = 3, .n_cols = 64, .row_stride_bytes = 68};
  EXPECT_EQ(matrix.row(2) - bytes.data(), 136);
  EXPECT_FALSE(matrix.empty());
  EXPECT_TRUE(MatrixView().empty());
}

}  // namespace
}  // namespace forebay
