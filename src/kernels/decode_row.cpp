#include "kernels/decode_row.h"

#include "core/ensure.h"
#include "kernels/decode_row_avx2.h"
#include "quant/quant.h"

namespace forebay {

DecodeFn find_decoder(DType type, Isa isa) {
  if (isa != Isa::kReference) {
    if (DecodeFn fast = find_decoder_avx2(type)) return fast;
  }
  const Codec* codec = find_codec(type);
  ENSURE(codec != nullptr, "asked to decode a type that holds no weights");
  return codec->decode;
}

}  // namespace forebay
