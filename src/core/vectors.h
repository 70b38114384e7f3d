/// The 256-bit vectors that *_avx2.cpp files are written in: AVX2's own where the processor has them, and on
/// 64-bit ARM the same functions over pairs of NEON registers, so that one source gives the same bits on
/// both. Include only in files that are built with a processor's vector flags: what is in here must not be
/// shared with others.
#pragma once

#if defined(__aarch64__)
#include "core/neon_floats.h"
#include "core/neon_integers.h"
#else
#include <immintrin.h>
#endif
