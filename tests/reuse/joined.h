// Texts of tokens from parts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace forebay {

using Tokens = std::vector<int32_t>;

inline Tokens joined(std::initializer_list<Tokens> parts) {
  Tokens out;
  for (const Tokens& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

}  // namespace forebay
