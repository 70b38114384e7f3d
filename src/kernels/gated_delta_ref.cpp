#include "kernels/gated_delta.h"

namespace forebay::gated_delta_detail {

void columns_ref(const Tokens& tokens, int k_dim, int v_dim, int first, int end, float* state,
                 float* /*scratch*/) {
  const auto at = [&](int i, int j) -> float& { return state[static_cast<int64_t>(i) * v_dim + j]; };
  for (int64_t t = 0; t < tokens.n; ++t)
    for (int j = first; j < end; ++j) {
      double recalled = 0;
      for (int i = 0; i < k_dim; ++i) {
        at(i, j) *= tokens.decay(t);
        recalled += static_cast<double>(at(i, j)) * tokens.k(t)[i];
      }
      const auto delta = static_cast<float>(tokens.beta(t) * (tokens.v(t)[j] - recalled));
      double sum = 0;
      for (int i = 0; i < k_dim; ++i) {
        at(i, j) += tokens.k(t)[i] * delta;
        sum += static_cast<double>(at(i, j)) * tokens.q(t)[i];
      }
      tokens.out(t)[j] = static_cast<float>(sum);
    }
}

}  // namespace forebay::gated_delta_detail
