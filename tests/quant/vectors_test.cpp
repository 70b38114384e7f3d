// Decoders and encoders against the reference's bytes.
#include "vectors.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "quant/quant.h"

namespace forebay {
namespace {

std::string type_name(const ::testing::TestParamInfo<DType>& param) {
  return std::string(name_of(param.param));
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

void expect_decodes(DType type, const std::string& name) {
  const std::vector<std::byte> blocks = read_vector_bytes(name + ".blocks.bin");
  const std::vector<float> wanted = read_vector_floats(name + ".f32.bin");
  const auto n = static_cast<int64_t>(wanted.size());
  ASSERT_GT(n, 0);
  ASSERT_EQ(static_cast<int64_t>(blocks.size()), row_bytes(type, n));
  std::vector<float> got(wanted.size());
  decode_row(type, blocks.data(), n, got.data());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(bits_of(got[i]), bits_of(wanted[i]))
        << "weight " << i << ": " << got[i] << ", wanted " << wanted[i];
}

class Decode : public ::testing::TestWithParam<DType> {};
TEST_P(Decode, GivesTheReferenceBits) {
  expect_decodes(GetParam(), lower_name(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Types, Decode, ::testing::ValuesIn(kCodecTypes), type_name);

TEST(DecodeEdges, Mxfp4ScalesAtBothEnds) {
  expect_decodes(DType::kMXFP4, "mxfp4.edge");
}

class Encode : public ::testing::TestWithParam<DType> {};
TEST_P(Encode, GivesTheReferenceBytes) {
  const DType type = GetParam();
  const std::vector<float> input = read_vector_floats("quant_input.f32.bin");
  const std::vector<std::byte> wanted = read_vector_bytes(lower_name(type) + ".quant.bin");
  const DTypeInfo& layout = info(type);
  ASSERT_EQ(static_cast<int64_t>(wanted.size()), row_bytes(type, static_cast<int64_t>(input.size())));
  std::vector<std::byte> got(wanted.size());
  const Result<void> encoded = encode_row(type, input, got.data());
  ASSERT_TRUE(encoded) << encoded.error().message;
  size_t n_different = 0, first = 0;
  for (size_t i = got.size(); i-- > 0;) {
    if (got[i] == wanted[i]) continue;
    ++n_different;
    first = i;
  }
  EXPECT_EQ(n_different, 0u) << "of " << got.size() << " bytes; first in block " << first / layout.block_bytes
                             << ", byte " << first % layout.block_bytes << ": "
                             << static_cast<int>(got[first]) << ", wanted "
                             << static_cast<int>(wanted[first]);
}
INSTANTIATE_TEST_SUITE_P(Types, Encode,
                         ::testing::Values(DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                           DType::kQ8_0, DType::kQ8_K, DType::kQ1_0, DType::kQ2_0,
                                           DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
                                           DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kTQ1_0,
                                           DType::kTQ2_0, DType::kMXFP4, DType::kNVFP4),
                         type_name);

/// Plain types have no .quant.bin: their vectors are the narrow values of the wide ones.
class EncodePlain : public ::testing::TestWithParam<DType> {};
TEST_P(EncodePlain, InvertsTheDecodeVectors) {
  const DType type = GetParam();
  const std::vector<float> input = read_vector_floats(lower_name(type) + ".f32.bin");
  const std::vector<std::byte> wanted = read_vector_bytes(lower_name(type) + ".blocks.bin");
  std::vector<std::byte> got(wanted.size());
  find_codec(type)->encode(input.data(), static_cast<int64_t>(input.size()),
                           got.data());  // infinities included
  EXPECT_EQ(got, wanted);
}
INSTANTIATE_TEST_SUITE_P(Types, EncodePlain, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         type_name);

}  // namespace
}  // namespace forebay
