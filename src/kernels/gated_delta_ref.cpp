#include <vector>

#include "kernels/gated_delta.h"

namespace forebay::gated_delta_detail {

void step_ref(int k_dim, int v_dim, const float* q, const float* k, const float* v, float decay, float beta,
              float* state, float* delta, float* out) {
  for (int i = 0; i < k_dim * v_dim; ++i) state[i] *= decay;
  for (int j = 0; j < v_dim; ++j) {
    double recalled = 0;
    for (int i = 0; i < k_dim; ++i) recalled += static_cast<double>(state[i * v_dim + j]) * k[i];
    delta[j] = static_cast<float>(beta * (v[j] - recalled));
  }
  for (int i = 0; i < k_dim; ++i)
    for (int j = 0; j < v_dim; ++j) state[i * v_dim + j] += k[i] * delta[j];
  for (int j = 0; j < v_dim; ++j) {
    double sum = 0;
    for (int i = 0; i < k_dim; ++i) sum += static_cast<double>(state[i * v_dim + j]) * q[i];
    out[j] = static_cast<float>(sum);
  }
}

}  // namespace forebay::gated_delta_detail
