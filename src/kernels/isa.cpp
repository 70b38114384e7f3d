#include "kernels/isa.h"

#include <cpuid.h>

namespace forebay {

Isa best_isa() {
  // The builtin also asks the operating system whether it keeps the wide registers; clang 14 does not
  // know "f16c" there, so that bit is read directly (leaf 1, ECX bit 29).
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1u << 29)) != 0;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has_avx2 && has_f16c ? Isa::kAvx2 : Isa::kReference;
}

bool has_vnni() {
  return best_isa() == Isa::kAvx2 && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

}  // namespace forebay
