// Tensors between ranks: every type, to the bit; and what a peer did wrong, with its rank.
#include "train/comm/tensors.h"

#include <cstring>

#include "core/hash.h"
#include "ranks.h"
#include "train/comm/tensor_header.h"

namespace forebay::train {
namespace {

TensorMap some_tensors() {
  const torch::Tensor x = torch::arange(12).to(torch::kFloat) / 7;
  return {{"f32", x.view({3, 4})},
          {"not contiguous", x.view({3, 4}).t()},
          {"f64", x.to(torch::kFloat64)},
          {"bf16", x.to(torch::kBFloat16).view({2, 3, 2})},
          {"f16", x.to(torch::kFloat16)},
          {"i64", torch::tensor({int64_t{1} << 40, int64_t{-3}}, torch::kInt64)},
          {"i32", torch::tensor({5, -6}, torch::kInt32)},
          {"u8", torch::tensor({0, 255}, torch::kUInt8)},
          {"bool", x > 1},
          {"a number", torch::tensor(2.5)},
          {"nothing", torch::zeros({0, 4})}};
}

Result<void> expect_same(const TensorMap& a, const TensorMap& b) {
  TRY(check(a.size() == b.size(), "as many"));
  for (const auto& [name, tensor] : a) {
    const auto at = b.find(name);
    TRY(check(
        at != b.end() && at->second.scalar_type() == tensor.scalar_type() && torch::equal(at->second, tensor),
        name));
  }
  return {};
}

TEST(Tensors, ComeAsTheyWere) {
  const Bytes packed = pack_tensors(some_tensors()).value();
  EXPECT_TRUE(expect_same(some_tensors(), unpack_tensors(packed).value()));
  EXPECT_TRUE(expect_same({}, unpack_tensors(pack_tensors({}).value()).value()));
  expect_all_well(run_ranks(2, [&](Rank& rank) -> Result<void> {
    if (rank.comm->rank() == 1) return send_tensors(*rank.comm, 0, 5, some_tensors());
    const TensorMap came = TRY(recv_tensors(*rank.comm, 1, 5));
    return expect_same(some_tensors(), came);
  }));
  const Result<Bytes> complex = pack_tensors({{"z", torch::zeros({2}, torch::kComplexFloat)}});
  ASSERT_FALSE(complex);
  EXPECT_EQ(complex.error().message, "tensor z of type ComplexFloat cannot be sent");
}

TEST(Tensors, PackedBytesThatDoNotFitAreRefused) {
  const Bytes good = pack_tensors({{"x", torch::ones({2})}, {"y", torch::ones({1})}}).value();
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_FALSE(unpack_tensors(Bytes(good.begin(), good.begin() + static_cast<int64_t>(n)))) << n;
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_EQ(unpack_tensors(longer).error().message, "a tensor message with 1 bytes behind its last tensor");
  Bytes flipped = good;
  flipped.back() ^= 1;
  EXPECT_NE(unpack_tensors(flipped).error().message.find("tensor y with checksum"), std::string::npos);
  const std::vector<TensorHeader> twice(2, {"x", ElementType::kU8, {0}, fast_checksum({})});
  EXPECT_EQ(unpack_tensors(encode_tensor_headers(twice).value()).error().message,
            "a tensor message with x twice");
}

/// What rank 0 says of what rank 1 sent.
std::string refused(const std::vector<Bytes>& messages) {
  std::string said;
  run_ranks(2, [&](Rank& rank) -> Result<void> {
    if (rank.comm->rank() == 1) {
      for (const Bytes& bytes : messages) TRY(rank.comm->send(0, 5, bytes));
      return {};
    }
    const Result<TensorMap> came = recv_tensors(*rank.comm, 1, 5);
    if (!came) said = came.error().message;
    return {};
  });
  return said;
}

TEST(Tensors, WhatAPeerDidWrongIsNamedWithItsRank) {
  const Bytes headers =
      encode_tensor_headers(std::vector<TensorHeader>{{"x", ElementType::kF32, {3}}}).value();
  EXPECT_EQ(refused({Bytes(40, 7)}),
            "rank 1 sent a tensor message whose beginning is 0x7070707, wanted 0x4e544246");
  EXPECT_NE(refused({headers, Bytes(12, 1)}).find("rank 1 sent tensor x with checksum"), std::string::npos);
  EXPECT_EQ(refused({headers, Bytes(11)}), "rank 1 sent 11 bytes of tensor x where 12 were due");
  Bytes longer = headers;
  longer.push_back(1);
  EXPECT_EQ(refused({longer}), "rank 1 sent 1 bytes behind a tensor message's headers");
  const Bytes huge =
      encode_tensor_headers(std::vector<TensorHeader>{{"x", ElementType::kF32, {int64_t{1} << 58}}}).value();
  EXPECT_EQ(refused({huge}), "rank 1 sent tensor x of f32 [288230376151711744], for which there is no room");
}

}  // namespace
}  // namespace forebay::train
