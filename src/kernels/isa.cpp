#include "kernels/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace forebay {

namespace {

#if defined(__x86_64__)

Isa ask() {
  // The builtin also asks the operating system whether it keeps the wide registers; clang 14 does not
  // know "f16c" there, so that bit is read directly (leaf 1, ECX bit 29).
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1u << 29)) != 0;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has_avx2 && has_f16c ? Isa::kAvx2 : Isa::kReference;
}

bool ask_for_vnni() {
  return ask() == Isa::kAvx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

#else

Isa ask() {
#if defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) return Isa::kNeon;
#endif
  return Isa::kReference;
}

bool ask_for_vnni() {
  return false;
}

#endif

}  // namespace

// Asked once: a virtual machine may take tens of microseconds to answer.
Isa best_isa() {
  static const Isa isa = ask();
  return isa;
}

bool has_vnni() {
  static const bool has = ask_for_vnni();
  return has;
}

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kNeon:
      return "neon";
    case Isa::kReference:
      break;
  }
  return "reference";
}

}  // namespace forebay
