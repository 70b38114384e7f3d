/// How a sequence keeps the keys and values of its tokens. All but f32 change results; forebay kld prints the
/// price.
#pragma once

#include <optional>
#include <string_view>

namespace forebay {

enum class KvType {
  kF32,   // exact
  kF16,   // rounded to half precision; a value above 65,504 becomes infinite
  kBf16,  // rounded to 8 bits of precision
  kInt8,  // rounded to 8-bit integers with one half-precision scale per 64 dimensions
};

// "f32", "f16", "bf16", "int8".
std::string_view name_of(KvType type);
std::optional<KvType> kv_type_from_name(std::string_view name);

}  // namespace forebay
