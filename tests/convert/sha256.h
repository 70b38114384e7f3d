/// SHA-256 (FIPS 180-4), for comparing tensors with published sums.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace forebay {

/// 64 lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace forebay
