// Every fast decoder against quant/: the same bits on random blocks, special scales and the reference
// vectors.
#include "kernels/decode_row.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quant/quant.h"

namespace forebay {
namespace {

constexpr DType kFastTypes[] = {
    DType::kF16,     DType::kBF16,  DType::kQ4_0,   DType::kQ4_1,   DType::kQ5_0,    DType::kQ5_1,
    DType::kQ8_0,    DType::kQ2_0,  DType::kQ2_K,   DType::kQ3_K,   DType::kQ4_K,    DType::kQ5_K,
    DType::kQ6_K,    DType::kIQ1_S, DType::kIQ1_M,  DType::kIQ2_S,  DType::kIQ2_XXS, DType::kIQ2_XS,
    DType::kIQ3_XXS, DType::kIQ3_S, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4,   DType::kNVFP4};

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Decodes with both; blocks start `byte_shift` and weights `float_shift` into buffers that end with them.
void expect_parity(DType type, const std::vector<std::byte>& blocks, size_t byte_shift, size_t float_shift,
                   const std::string& what) {
  const DTypeInfo& layout = info(type);
  const auto n = static_cast<int64_t>(blocks.size()) / layout.block_bytes * layout.block_weights;
  std::vector<float> wanted(static_cast<size_t>(n));
  find_codec(type)->decode(blocks.data(), n, wanted.data());

  constexpr float kUntouched = 12345;
  std::vector<std::byte> shifted(byte_shift);
  shifted.insert(shifted.end(), blocks.begin(), blocks.end());
  std::vector<float> got(float_shift + wanted.size() + 1, kUntouched);
  find_decoder(type, best_isa())(shifted.data() + byte_shift, n, got.data() + float_shift);

  for (size_t i = 0; i < wanted.size(); ++i) {
    const float w = got[float_shift + i];
    if (std::isnan(w) && std::isnan(wanted[i])) continue;
    ASSERT_EQ(bits_of(w), bits_of(wanted[i]))
        << what << ": weight " << i << " of " << n << " is " << w << ", wanted " << wanted[i];
  }
  ASSERT_EQ(got.back(), kUntouched) << what << ": wrote past the end";
  for (size_t i = 0; i < float_shift; ++i)
    ASSERT_EQ(got[i], kUntouched) << what << ": wrote before the start";
}

std::vector<std::byte> random_blocks(DType type, int n_blocks, std::mt19937& random) {
  std::vector<std::byte> blocks(static_cast<size_t>(n_blocks) * static_cast<size_t>(info(type).block_bytes));
  for (std::byte& b : blocks) b = static_cast<std::byte>(random() & 0xff);
  return blocks;
}

std::vector<std::byte> read_blocks(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::byte> bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

class DecodeRow : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (best_isa() == Isa::kReference) GTEST_SKIP() << "no fast instruction set on this machine";
  }
};

TEST_P(DecodeRow, IsNotTheReferenceItself) {
  EXPECT_NE(find_decoder(GetParam(), best_isa()), find_decoder(GetParam(), Isa::kReference));
}

TEST_P(DecodeRow, RandomBlocksAtAnyAddressAndCount) {
  // Random bytes are random scales too: subnormal, infinite and NaN halves among them.
  constexpr unsigned kSeed = 20240;
  std::mt19937 random(kSeed);
  for (int n_blocks : {0, 1, 2, 3, 5, 7, 8, 9, 31, 200})
    for (size_t shift : {0u, 1u, 2u, 3u, 7u})
      expect_parity(GetParam(), random_blocks(GetParam(), n_blocks, random), shift, (shift * 3) % 8,
                    "seed " + std::to_string(kSeed) + ", " + std::to_string(n_blocks) + " blocks, shift " +
                        std::to_string(shift));
}

TEST_P(DecodeRow, SpecialHalvesEverywhere) {
  // Wherever a format keeps its scales, they take these values at some offset.
  std::mt19937 random(7);
  for (uint16_t half : {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0x7c00,
                        0xfc00, 0x7c01, 0x7e00, 0xffff}) {
    for (size_t start : {0u, 1u}) {
      std::vector<std::byte> blocks = random_blocks(GetParam(), 8, random);
      const auto block_bytes = static_cast<size_t>(info(GetParam()).block_bytes);
      for (size_t begin = 0; begin < blocks.size(); begin += block_bytes)
        for (size_t at = start; at + 2 <= block_bytes; at += 2)
          if (random() & 1) std::memcpy(&blocks[begin + at], &half, sizeof half);
      expect_parity(GetParam(), blocks, 0, 0, "half " + std::to_string(half));
    }
  }
}

TEST_P(DecodeRow, ReferenceVectors) {
  std::string name(name_of(GetParam()));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string folder = std::string(FOREBAY_TEST_DATA) + "/quant/vectors/";
  expect_parity(GetParam(), read_blocks(folder + name + ".blocks.bin"), 0, 0, name);
  if (GetParam() == DType::kMXFP4)
    expect_parity(GetParam(), read_blocks(folder + "mxfp4.edge.blocks.bin"), 0, 0, "edge");
}

INSTANTIATE_TEST_SUITE_P(Types, DecodeRow, ::testing::ValuesIn(kFastTypes),
                         [](const auto& param) { return std::string(name_of(param.param)); });

TEST(FindDecoder, EveryTypeWithACodecHasOne) {
  for (uint32_t id = 0; id < 64; ++id) {
    const std::optional<DType> type = dtype_from_id(id);
    if (!type || find_codec(*type) == nullptr) continue;
    EXPECT_EQ(find_decoder(*type, Isa::kReference), find_codec(*type)->decode) << name_of(*type);
    EXPECT_NE(find_decoder(*type, best_isa()), nullptr) << name_of(*type);
  }
}

TEST(FindDecoderDeathTest, IntegersHoldNoWeights) {
  EXPECT_DEATH(find_decoder(DType::kI32, Isa::kReference), "holds no weights");
}

}  // namespace
}  // namespace forebay
