#include "safetensors/types.h"

#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "core/ensure.h"

namespace forebay {
namespace {

struct TypeInfo {
  SafeType type;
  std::string_view name;
  int bytes;
};

constexpr TypeInfo kTypes[] = {
    {SafeType::kF64, "F64", 8},   {SafeType::kF32, "F32", 4},        {SafeType::kF16, "F16", 2},
    {SafeType::kBF16, "BF16", 2}, {SafeType::kF8E4M3, "F8_E4M3", 1}, {SafeType::kI64, "I64", 8},
    {SafeType::kI32, "I32", 4},   {SafeType::kI16, "I16", 2},        {SafeType::kI8, "I8", 1},
    {SafeType::kU8, "U8", 1},     {SafeType::kBool, "BOOL", 1},
};

const TypeInfo& info(SafeType type) {
  for (const TypeInfo& entry : kTypes)
    if (entry.type == type) return entry;
  ENSURE(false, "a value outside SafeType");
}

}  // namespace

std::string_view name_of(SafeType type) {
  return info(type).name;
}
int bytes_of(SafeType type) {
  return info(type).bytes;
}

uint64_t SafeTensor::n_elements() const {
  return std::accumulate(shape.begin(), shape.end(), uint64_t{1}, std::multiplies<>());
}

namespace safetensors {

std::optional<SafeType> type_from_name(std::string_view name) {
  for (const TypeInfo& entry : kTypes)
    if (entry.name == name) return entry.type;
  return std::nullopt;
}

std::optional<uint64_t> checked_bytes(SafeType type, std::span<const uint64_t> shape) {
  auto n_bytes = static_cast<uint64_t>(bytes_of(type));
  for (const uint64_t n : shape)
    if (__builtin_mul_overflow(n_bytes, n, &n_bytes) || n_bytes > INT64_MAX) return std::nullopt;
  return n_bytes;
}

std::string shape_string(std::span<const uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace safetensors
}  // namespace forebay
