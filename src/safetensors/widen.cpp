/// Elements of any type as f32.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "safetensors/json.h"
#include "safetensors/safetensors.h"
#include "safetensors/types.h"
#include "tensor/half.h"

namespace forebay {
namespace {

/// E4M3 without infinities: bias 7, all ones is NaN, the largest value is 448.
float f8_e4m3_to_float(uint8_t bits) {
  const int exponent = bits >> 3 & 15;
  const int mantissa = bits & 7;
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  if (exponent == 15 && mantissa == 7) return std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return sign * magnitude;
}

template <typename Stored, typename Widen>
void widen_all(const std::byte* in, std::span<float> out, Widen widen) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;  // the file aligns nothing
    std::memcpy(&value, in + i * sizeof(Stored), sizeof(Stored));
    out[i] = widen(value);
  }
}

}  // namespace

Result<void> SafetensorsFile::read_f32(const SafeTensor& tensor, uint64_t first, std::span<float> out) const {
  if (first > tensor.n_elements() || out.size() > tensor.n_elements() - first)
    return Error{Code::kInvalidArgument,
                 fmt::format("tensor {}: elements {} to {}, it has {}", safetensors::quote(tensor.name),
                             first, first + out.size(), tensor.n_elements())};
  const std::byte* in = bytes(tensor).data() + first * static_cast<uint64_t>(bytes_of(tensor.type));
  const auto convert = [](auto value) { return static_cast<float>(value); };
  switch (tensor.type) {
    case SafeType::kF64:
      widen_all<double>(in, out, convert);
      break;
    case SafeType::kF32:
      widen_all<float>(in, out, convert);
      break;
    case SafeType::kF16:
      widen_all<uint16_t>(in, out, f32_from_f16);
      break;
    case SafeType::kBF16:
      widen_all<uint16_t>(in, out, f32_from_bf16);
      break;
    case SafeType::kF8E4M3:
      widen_all<uint8_t>(in, out, f8_e4m3_to_float);
      break;
    case SafeType::kI64:
      widen_all<int64_t>(in, out, convert);
      break;
    case SafeType::kI32:
      widen_all<int32_t>(in, out, convert);
      break;
    case SafeType::kI16:
      widen_all<int16_t>(in, out, convert);
      break;
    case SafeType::kI8:
      widen_all<int8_t>(in, out, convert);
      break;
    case SafeType::kU8:
      widen_all<uint8_t>(in, out, convert);
      break;
    case SafeType::kBool:
      widen_all<uint8_t>(in, out, [](uint8_t value) { return value != 0 ? 1.0f : 0.0f; });
      break;
  }
  return {};
}

}  // namespace forebay
