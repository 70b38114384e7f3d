/// Private to this folder: the table of AVX2 decoders.
#pragma once

#include "kernels/decode_row.h"

namespace forebay {

/// Null where decode_row_avx2*.cpp has no version. Call the function only where best_isa() is not kReference.
DecodeFn find_decoder_avx2(DType type);

}  // namespace forebay
