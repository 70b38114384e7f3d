/// Which instruction set the fast files in this folder may use. One question, asked once at start-up.
#pragma once

#include <string_view>

namespace forebay {

enum class Isa {
  kReference,  // plain C++: the definition
  kAvx2,       // AVX2, FMA and F16C together
  kNeon,       // NEON with dot products of bytes; the same source and the same bits as kAvx2 (core/vectors.h)
};

/// The best set that this processor and operating system offer.
Isa best_isa();

/// "avx2", "neon", "reference".
std::string_view name_of(Isa isa);

/// AVX-512 (F, BW, DQ, VL) with VNNI, on top of kAvx2: integer dot products in wider registers, the same
/// bits.
bool has_vnni();

}  // namespace forebay
