/// Block formats: what the bytes of a quantised row mean, exactly. The scalar code here is the definition;
/// fast decoders live in kernels/ and are tested against it. One file per format family.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "forebay/result.h"

#include "tensor/dtype.h"

namespace forebay {

/// One format. decode and encode work on whole blocks: n is a multiple of the block's weights.
struct Codec {
  DType type;
  void (*decode)(const std::byte* blocks, int64_t n, float* out);
  /// Byte-identical to the published reference quantiser without importance weights; null where this
  /// version does not write the format.
  void (*encode)(const float* in, int64_t n, std::byte* blocks);
};

/// Every type that holds weights has a codec (not the integer types, F64, Q8_1).
const Codec* find_codec(DType type);

/// Decodes n elements. `type` must have a codec and n be a multiple of its block (ENSURE).
void decode_row(DType type, const std::byte* blocks, int64_t n, float* out);

/// Errors: kUnsupported when the type has no encoder; kInvalidArgument when n is not a multiple of the
/// block, or when an input is not finite or too large for the type's scale (the index and value are named).
Result<void> encode_row(DType type, std::span<const float> in, std::byte* blocks);

}  // namespace forebay
