/// The codebooks of the IQ1, IQ2 and IQ3 formats: each row is a vector of 8 or 4 small numbers, one byte
/// each, element j in byte j (so a row loads as one word).
#pragma once

#include <cstddef>
#include <cstdint>

namespace forebay {

template <typename Row, size_t kRows>
struct Grid {
  Row rows[kRows];
};

extern const Grid<uint64_t, 256> kIq2xxsGrid;  // magnitudes 8, 25, 43
extern const Grid<uint64_t, 512> kIq2xsGrid;
extern const Grid<uint64_t, 1024> kIq2sGrid;
extern const Grid<uint32_t, 256> kIq3xxsGrid;  // magnitudes 4, 12, 20, 28, 36, 44, 52, 62
extern const Grid<uint32_t, 512> kIq3sGrid;    // odd magnitudes 1..15
extern const Grid<uint64_t, 2048> kIq1Grid;    // signed bytes -1, 0, 1; for IQ1_S and IQ1_M

/// Element j of a row.
template <typename Row>
constexpr int grid_value(Row row, int j) {
  return static_cast<int8_t>(row >> 8 * j & 0xff);
}

/// IQ2_XXS, IQ2_XS and IQ3_XXS store seven of eight signs: the eighth makes the number of minus signs even.
constexpr uint8_t even_sign_mask(uint32_t seven_signs) {
  return static_cast<uint8_t>(seven_signs | (__builtin_popcount(seven_signs) & 1u) << 7);
}

}  // namespace forebay
