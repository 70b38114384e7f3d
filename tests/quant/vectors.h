/// Reading the files of vectors/.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/dtype.h"

namespace forebay {

/// Every type with a codec.
inline constexpr DType kCodecTypes[] = {
    DType::kF32,     DType::kF16,    DType::kBF16,  DType::kQ4_0,    DType::kQ4_1,  DType::kQ5_0,
    DType::kQ5_1,    DType::kQ8_0,   DType::kQ8_K,  DType::kQ1_0,    DType::kQ2_0,  DType::kQ2_K,
    DType::kQ3_K,    DType::kQ4_K,   DType::kQ5_K,  DType::kQ6_K,    DType::kIQ1_S, DType::kIQ1_M,
    DType::kIQ2_XXS, DType::kIQ2_XS, DType::kIQ2_S, DType::kIQ3_XXS, DType::kIQ3_S, DType::kIQ4_NL,
    DType::kIQ4_XS,  DType::kTQ1_0,  DType::kTQ2_0, DType::kMXFP4,   DType::kNVFP4};

inline std::string lower_name(DType type) {
  std::string name(name_of(type));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

inline std::vector<std::byte> read_vector_bytes(const std::string& file) {
  std::ifstream in(std::string(FOREBAY_TEST_DATA) + "/quant/vectors/" + file, std::ios::binary);
  EXPECT_TRUE(in.good()) << file;
  const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::byte> bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

inline std::vector<float> read_vector_floats(const std::string& file) {
  const std::vector<std::byte> bytes = read_vector_bytes(file);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

}  // namespace forebay
