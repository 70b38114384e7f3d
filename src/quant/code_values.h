/// What the 16 codes of the non-uniform 4-bit formats stand for.
#pragma once

#include <cstdint>

namespace forebay {

/// IQ4_NL, IQ4_XS.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

/// MXFP4, NVFP4: twice the E2M1 number. Code 8, minus zero, is plain zero.
inline constexpr int8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace forebay
