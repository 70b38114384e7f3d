#include "train/wire/prf.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/ensure.h"

namespace forebay::train {

double prf_normal(uint64_t stream, uint64_t j) {
  // The first is in (0, 1]: its logarithm is finite.
  const double first = (static_cast<double>(prf_at(stream, 2 * j) >> 11) + 1) * 0x1p-53;
  const double second = static_cast<double>(prf_at(stream, 2 * j + 1) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second);
}

std::vector<int64_t> prf_exact_k(uint64_t stream, int64_t width, int64_t k) {
  ENSURE(0 <= k && k <= width && width <= int64_t{1} << kPrfIndexBits, "a mask of more than there is");
  std::vector<int64_t> ranks(width);
  for (int64_t j = 0; j < width; ++j) ranks[j] = prf_rank(prf_at(stream, j), j);
  std::nth_element(ranks.begin(), ranks.begin() + k, ranks.end());
  ranks.resize(k);
  for (int64_t& rank : ranks) rank &= (int64_t{1} << kPrfIndexBits) - 1;
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace forebay::train
