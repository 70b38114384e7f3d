// The same source as block_codes_avx2.cpp, compiled for processors that add four byte products at once.
#include "kernels/block_codes_scan.h"

namespace forebay::block_codes_detail {

void bound_vnni(const CodedQuery& q, const BlockCodes& codes, int64_t begin, int64_t end, float* low,
                float* high) {
  bound(q, codes, begin, end, low, high);
}

}  // namespace forebay::block_codes_detail
