#include "kernels/int8_matvec_avx2.h"

namespace forebay::int8_detail {

const Int8Kernels* find_kernels_avx2(DType type) {
  return find_kernels(type);
}

}  // namespace forebay::int8_detail
