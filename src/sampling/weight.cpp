#include "sampling/weight.h"

namespace forebay {

void weights(const double* x, size_t n, double* out) {
  size_t n_wide = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    n_wide = n / 4 * 4;
    sampling_detail::weights_avx2(x, n_wide, out);
  }
#elif defined(__aarch64__)
  n_wide = n / 4 * 4;
  sampling_detail::weights_avx2(x, n_wide, out);
#endif
  sampling_detail::weights_ref(x + n_wide, n - n_wide, out + n_wide);
}

namespace sampling_detail {

void weights_ref(const double* x, size_t n, double* out) {
  for (size_t i = 0; i < n; ++i) out[i] = weight(x[i]);
}

}  // namespace sampling_detail
}  // namespace forebay
