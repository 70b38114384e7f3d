#include "kernels/router.h"

#include <cmath>

#include "core/ensure.h"

namespace forebay {

void route_top_k(std::span<const float> logits, int k, int32_t* ids, float* weights) {
  ENSURE(k >= 1 && k <= static_cast<int>(logits.size()), "route_top_k: more experts asked than there are");
  // Insertion into a short sorted list: k is 4 to 10, E up to a few hundred. NaN never beats anything.
  int n = 0;
  for (int32_t e = 0; e < static_cast<int32_t>(logits.size()); ++e) {
    const float logit = logits[e];
    int at = n;
    while (at > 0 && (logit > logits[ids[at - 1]] || std::isnan(logits[ids[at - 1]]))) --at;
    if (at >= k) continue;
    if (n < k) ++n;
    for (int j = n - 1; j > at; --j) ids[j] = ids[j - 1];
    ids[at] = e;
  }
  double sum = 0;
  for (int j = 0; j < k; ++j) sum += std::exp(static_cast<double>(logits[ids[j]]) - logits[ids[0]]);
  for (int j = 0; j < k; ++j)
    weights[j] = static_cast<float>(std::exp(static_cast<double>(logits[ids[j]]) - logits[ids[0]]) / sum);
}

}  // namespace forebay
