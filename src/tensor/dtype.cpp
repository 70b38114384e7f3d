#include "tensor/dtype.h"

#include <array>
#include <cctype>

#include "core/ensure.h"

namespace forebay {
namespace {

constexpr std::array kTypes = {
    DTypeInfo{DType::kF32, "F32", 1, 4},
    DTypeInfo{DType::kF16, "F16", 1, 2},
    DTypeInfo{DType::kQ4_0, "Q4_0", 32, 18},
    DTypeInfo{DType::kQ4_1, "Q4_1", 32, 20},
    DTypeInfo{DType::kQ5_0, "Q5_0", 32, 22},
    DTypeInfo{DType::kQ5_1, "Q5_1", 32, 24},
    DTypeInfo{DType::kQ8_0, "Q8_0", 32, 34},
    DTypeInfo{DType::kQ8_1, "Q8_1", 32, 36},
    DTypeInfo{DType::kQ2_K, "Q2_K", 256, 84},
    DTypeInfo{DType::kQ3_K, "Q3_K", 256, 110},
    DTypeInfo{DType::kQ4_K, "Q4_K", 256, 144},
    DTypeInfo{DType::kQ5_K, "Q5_K", 256, 176},
    DTypeInfo{DType::kQ6_K, "Q6_K", 256, 210},
    DTypeInfo{DType::kQ8_K, "Q8_K", 256, 292},
    DTypeInfo{DType::kIQ2_XXS, "IQ2_XXS", 256, 66},
    DTypeInfo{DType::kIQ2_XS, "IQ2_XS", 256, 74},
    DTypeInfo{DType::kIQ3_XXS, "IQ3_XXS", 256, 98},
    DTypeInfo{DType::kIQ1_S, "IQ1_S", 256, 50},
    DTypeInfo{DType::kIQ4_NL, "IQ4_NL", 32, 18},
    DTypeInfo{DType::kIQ3_S, "IQ3_S", 256, 110},
    DTypeInfo{DType::kIQ2_S, "IQ2_S", 256, 82},
    DTypeInfo{DType::kIQ4_XS, "IQ4_XS", 256, 136},
    DTypeInfo{DType::kI8, "I8", 1, 1},
    DTypeInfo{DType::kI16, "I16", 1, 2},
    DTypeInfo{DType::kI32, "I32", 1, 4},
    DTypeInfo{DType::kI64, "I64", 1, 8},
    DTypeInfo{DType::kF64, "F64", 1, 8},
    DTypeInfo{DType::kIQ1_M, "IQ1_M", 256, 56},
    DTypeInfo{DType::kBF16, "BF16", 1, 2},
    DTypeInfo{DType::kTQ1_0, "TQ1_0", 256, 54},
    DTypeInfo{DType::kTQ2_0, "TQ2_0", 256, 66},
    DTypeInfo{DType::kMXFP4, "MXFP4", 32, 17},
    DTypeInfo{DType::kNVFP4, "NVFP4", 64, 36},
    DTypeInfo{DType::kQ1_0, "Q1_0", 128, 18},
    DTypeInfo{DType::kQ2_0, "Q2_0", 64, 18},
};

constexpr uint32_t kIdLimit = 43;

constexpr std::array<int, kIdLimit> index_by_id() {
  std::array<int, kIdLimit> index{};
  index.fill(-1);
  for (size_t i = 0; i < kTypes.size(); ++i)
    index[static_cast<uint32_t>(kTypes[i].type)] = static_cast<int>(i);
  return index;
}
constexpr auto kIndexById = index_by_id();

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::toupper(static_cast<unsigned char>(a[i])) != std::toupper(static_cast<unsigned char>(b[i])))
      return false;
  return true;
}

}  // namespace

const DTypeInfo& info(DType type) {
  const auto id = static_cast<uint32_t>(type);
  ENSURE(id < kIdLimit && kIndexById[id] >= 0, "a DType that is not an enumerator");
  return kTypes[kIndexById[id]];
}

std::optional<DType> dtype_from_id(uint32_t id) {
  if (id >= kIdLimit || kIndexById[id] < 0) return std::nullopt;
  return kTypes[kIndexById[id]].type;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& type : kTypes)
    if (equal_ignoring_case(type.name, name)) return type.type;
  return std::nullopt;
}

}  // namespace forebay
