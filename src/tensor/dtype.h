/// Element and block types as GGUF numbers them: name, id, weights and bytes per block.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace forebay {

/// The numeric values are the ids in GGUF files.
enum class DType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

struct DTypeInfo {
  DType type;
  std::string_view name;  // "Q4_K"
  int block_weights;      // elements per block
  int block_bytes;
};

/// The entry of a type; every enumerator has one.
const DTypeInfo& info(DType type);
/// By GGUF id; empty for retired, private or unknown ids.
std::optional<DType> dtype_from_id(uint32_t id);
/// By name in any case ("q4_k", "Q4_K", "bf16").
std::optional<DType> dtype_from_name(std::string_view name);

inline std::string_view name_of(DType type) {
  return info(type).name;
}

/// Bytes of a row of n elements; n must be a multiple of the block.
inline int64_t row_bytes(DType type, int64_t n) {
  const DTypeInfo& i = info(type);
  return n / i.block_weights * i.block_bytes;
}

}  // namespace forebay
