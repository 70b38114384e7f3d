/// Which instruction set the fast files in this folder may use. One question, asked once at start-up.
#pragma once

namespace forebay {

enum class Isa {
  kReference,  // plain C++: the definition
  kAvx2,       // AVX2, FMA and F16C together
};

/// The best set that this processor and operating system offer.
Isa best_isa();

}  // namespace forebay
