// Reads of values wherever they lie. In the unnamed namespace, because files built for different processors
// include it and may not share code; for *_avx2 files, include nowhere else.
#pragma once

#include <cstdint>
#include <cstring>

namespace forebay {
namespace {

template <typename T>
T load(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace
}  // namespace forebay
