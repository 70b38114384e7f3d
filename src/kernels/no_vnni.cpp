// What block_codes_vnni.cpp, int8_vnni.cpp and int8_tile_vnni.cpp define, for processors without AVX-512:
// nothing calls it, because has_vnni() is false.
#include "core/ensure.h"
#include "kernels/block_codes.h"
#include "kernels/int8_dot.h"

namespace forebay::int8_detail {

const Int8Kernels* find_kernels_vnni(DType) {
  return nullptr;
}

void tile_vnni(const Panel&, PanelForm, int64_t, const float*, int, float* const*, Ahead) {
  ENSURE(false, "asked for AVX-512 VNNI on another processor");
}

}  // namespace forebay::int8_detail

namespace forebay::block_codes_detail {

void bound_vnni(const CodedQuery&, const BlockCodes&, int64_t, int64_t, float*, float*) {
  ENSURE(false, "asked for AVX-512 VNNI on another processor");
}

}  // namespace forebay::block_codes_detail
