/// Rows of quantised weights to f32. The definition is quant/; the versions here give the same bits, faster.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"
#include "tensor/dtype.h"

namespace forebay {

/// out[0..n) = the weights of n / block_weights consecutive blocks. n is a multiple of the block; neither
/// pointer needs an alignment; the two buffers do not overlap. Bit-identical to quant/'s decode, with one
/// liberty: which NaN a NaN scale gives is not part of the contract.
using DecodeFn = void (*)(const std::byte* blocks, int64_t n, float* out);

/// Never null for a type that has a codec (ENSURE): where no version for `isa` exists, the reference.
DecodeFn find_decoder(DType type, Isa isa);

}  // namespace forebay
