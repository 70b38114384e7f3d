// What stands before tensors: it comes back as it was, and what is wrong with it is named.
#include "train/comm/tensor_header.h"

#include <gtest/gtest.h>

#include "core/bytes.h"

namespace forebay::train {
namespace {

const std::vector<TensorHeader> kSome = {{"model.embed_tokens.weight", ElementType::kF32, {151936, 896}},
                                         {"", ElementType::kI64, {}},
                                         {"signs", ElementType::kU8, {7, 0, 3}, 12345}};

/// With a checksum that fits.
Bytes summed(Bytes bytes) {
  const uint64_t sum = checksum(std::as_bytes(std::span(bytes).first(bytes.size() - 8)));
  for (size_t i = 0; i < 8; ++i) bytes[bytes.size() - 8 + i] = static_cast<uint8_t>(sum >> (8 * i));
  return bytes;
}

std::string refusal(const Bytes& bytes) {
  const auto decoded = decode_tensor_headers(bytes);
  if (decoded) return "";
  EXPECT_EQ(decoded.error().code, Code::kCorrupt);
  return decoded.error().message;
}

TEST(TensorHeader, ComesBack) {
  EXPECT_EQ(tensor_bytes(kSome[0]).value(), 151936u * 896 * 4);
  EXPECT_EQ(tensor_bytes(kSome[1]).value(), 8u) << "one number";
  EXPECT_EQ(tensor_bytes(kSome[2]).value(), 0u);
  for (size_t n = 0; n <= kSome.size(); ++n) {
    Bytes bytes = encode_tensor_headers(std::span(kSome).first(n)).value();
    const size_t length = bytes.size();
    bytes.resize(length + 5);  // what comes behind is not theirs
    const auto [headers, used] = decode_tensor_headers(bytes).value();
    EXPECT_EQ(headers, std::vector(kSome.begin(), kSome.begin() + static_cast<int64_t>(n)));
    EXPECT_EQ(used, length);
  }
}

TEST(TensorHeader, WhatIsWrongIsNamed) {
  const Bytes good = encode_tensor_headers(kSome).value();
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_NE(refusal(Bytes(good.begin(), good.begin() + static_cast<int64_t>(n))), "") << n << " bytes";
  for (size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= 0x10;
    EXPECT_NE(refusal(bad), "") << "byte " << i;
  }
  const auto with = [&](size_t at, uint8_t value) {
    Bytes bad = good;
    bad[at] = value;
    return refusal(summed(bad));
  };
  EXPECT_EQ(with(0, 'X'), "a tensor message whose beginning is 0x4e544258, wanted 0x4e544246");
  EXPECT_EQ(with(4, 2), "a tensor message whose version is 0x2, wanted 0x1");
  EXPECT_EQ(with(12, 200),
            "a tensor message whose number of tensors is 0xc8, wanted what its length has room for");
  EXPECT_EQ(with(16, 9), "a tensor message whose type is 0x9, wanted 1 to 8");
  EXPECT_EQ(with(17, 9), "a tensor message whose dimensions is 0x9, wanted at most 8");
  EXPECT_NE(with(17, 1).find("bytes of a tensor is 0x380, wanted 0x94600 by its shape"), std::string::npos)
      << with(17, 1);
  EXPECT_NE(with(12, 2).find("wanted no bytes behind the last tensor"), std::string::npos) << with(12, 2);
}

TEST(TensorHeader, SizesThatOverflowAreRefused) {
  EXPECT_FALSE(tensor_bytes({"x", ElementType::kF32, {int64_t{1} << 40, int64_t{1} << 40}}));
  EXPECT_FALSE(tensor_bytes({"x", ElementType::kF32, {-1}}));
  EXPECT_FALSE(tensor_bytes({"x", ElementType::kF32, {0, -1}}));
  EXPECT_FALSE(encode_tensor_headers(std::vector<TensorHeader>{{"x", ElementType::kF32, {-1}}}));
  EXPECT_FALSE(
      encode_tensor_headers(std::vector<TensorHeader>{{"x", ElementType::kF32, std::vector<int64_t>(9, 1)}}));
  EXPECT_FALSE(
      encode_tensor_headers(std::vector<TensorHeader>{{std::string(70000, 'x'), ElementType::kF32, {1}}}));
}

}  // namespace
}  // namespace forebay::train
