// The codebooks as a whole; vectors_test.cpp sees most rows one by one.
#include "quant/iq_tables.h"

#include <set>

#include <gtest/gtest.h>

namespace forebay {
namespace {

template <typename Row, size_t kRows>
void expect_grid(const Grid<Row, kRows>& grid, int wanted_sum, const std::set<int>& wanted_numbers) {
  int sum = 0;
  std::set<int> numbers;
  std::set<Row> rows;
  for (Row row : grid.rows) {
    rows.insert(row);
    for (int j = 0; j < static_cast<int>(sizeof(Row)); ++j) {
      sum += grid_value(row, j);
      numbers.insert(grid_value(row, j));
    }
  }
  EXPECT_EQ(sum, wanted_sum);
  EXPECT_EQ(numbers, wanted_numbers);
  EXPECT_EQ(rows.size(), kRows) << "rows repeat";
}

TEST(IqTables, SumsNumbersAndDistinctRows) {
  expect_grid(kIq2xxsGrid, 38611, {8, 25, 43});
  expect_grid(kIq2xsGrid, 81582, {8, 25, 43});
  expect_grid(kIq2sGrid, 167589, {8, 25, 43});
  expect_grid(kIq3xxsGrid, 25592, {4, 12, 20, 28, 36, 44, 52, 62});
  expect_grid(kIq3sGrid, 12748, {1, 3, 5, 7, 9, 11, 13, 15});
  expect_grid(kIq1Grid, -15, {-1, 0, 1});
}

TEST(IqTables, EighthSignMakesTheNumberEven) {
  for (uint32_t signs = 0; signs < 128; ++signs) {
    const uint8_t mask = even_sign_mask(signs);
    EXPECT_EQ(mask & 127u, signs);
    EXPECT_EQ(__builtin_popcount(mask) % 2, 0) << signs;
  }
}

}  // namespace
}  // namespace forebay
