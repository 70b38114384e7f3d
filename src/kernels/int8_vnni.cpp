// The same source as int8_avx2.cpp, compiled for processors that add four byte products at once.
#include "kernels/int8_matvec_avx2.h"

namespace forebay::int8_detail {

const Int8Kernels* find_kernels_vnni(DType type) {
  return find_kernels(type);
}

}  // namespace forebay::int8_detail
