/// The sampling chain in its most obvious form: full sorts, std::exp, quadratic searches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/sampling.h"

namespace forebay::reference {

void apply_penalties(std::vector<float>& logits, const std::vector<int32_t>& recent,
                     const SamplingOptions& options);
void apply_dry(std::vector<float>& logits, const std::vector<int32_t>& recent,
               const SamplingOptions& options);

struct Answer {
  Distribution distribution;
  /// Smallest distance of any decision from falling the other way: below about 1e-9 rounding may decide.
  double margin = 1;
};
Answer make_distribution(const std::vector<float>& logits, const SamplingOptions& options);

}  // namespace forebay::reference
