// Deltas as bytes: what comes back, what they cost, what is refused.
#include "train/anchor/delta.h"

#include <random>

#include <gtest/gtest.h>

#include "core/bytes.h"
#include "support/result_matchers.h"

namespace forebay::train {
namespace {

Bf16Tensors random_tensors(uint64_t seed) {
  std::mt19937_64 random(seed);
  Bf16Tensors out;
  for (const auto& [name, shape] : std::map<std::string, std::vector<uint64_t>>{
           {"a", {64, 100}}, {"b.weight", {1003}}, {"c", {}}, {"none", {0, 4}}}) {
    Bf16Tensor& tensor = out[name];
    tensor.shape = shape;
    uint64_t n = 1;
    for (const uint64_t dim : shape) n *= dim;
    for (uint64_t i = 0; i < n; ++i) tensor.bits.push_back(static_cast<uint16_t>(random()));
  }
  return out;
}

/// With about one in `every` values changed.
Bf16Tensors changed(Bf16Tensors tensors, uint64_t every, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (auto& [name, tensor] : tensors)
    for (uint16_t& bits : tensor.bits)
      if (random() % every == 0) bits = static_cast<uint16_t>(random());
  return tensors;
}

Delta delta_of(const Bf16Tensors& base, const Bf16Tensors& target, uint64_t from = 0, uint64_t to = 1,
               DeltaChoice choice = DeltaChoice::kSmaller) {
  return parse_delta(make_delta(base, target, from, to, choice).value(), "delta").value();
}

TEST(Delta, RoundTripsEveryBit) {
  const Bf16Tensors base = random_tensors(1);
  for (const uint64_t every : {1, 2, 30, 1000}) {
    const Bf16Tensors target = changed(base, every, every);
    for (const DeltaChoice choice : {DeltaChoice::kSmaller, DeltaChoice::kBitmap, DeltaChoice::kPairs}) {
      Bf16Tensors here = base;
      ASSERT_OK(apply_delta(delta_of(base, target, 0, 1, choice), 0, here));
      EXPECT_EQ(here, target);
    }
  }
}

TEST(Delta, ZeroesAndNansKeepTheirBits) {
  Bf16Tensors base, target;
  base["w"] = {{6}, {0x0000, 0x8000, 0x7fc0, 0x7fc0, 0xff81, 0x3f80}};
  target["w"] = {{6}, {0x8000, 0x0000, 0x7fc1, 0xffc0, 0xff81, 0x3f80}};
  for (const DeltaChoice choice : {DeltaChoice::kBitmap, DeltaChoice::kPairs}) {
    const Delta delta = delta_of(base, target, 0, 1, choice);
    EXPECT_EQ(delta.n_changed(), 4u);
    Bf16Tensors here = base;
    ASSERT_OK(apply_delta(delta, 0, here));
    EXPECT_EQ(here, target);
  }
}

TEST(Delta, CostsWhatTheFormatSays) {
  Bf16Tensors base;
  base["w"] = {{64, 100}, std::vector<uint16_t>(6400, 1)};
  // Unchanged: a sixteenth of the values as a bitmap, nothing as pairs.
  EXPECT_EQ(delta_of(base, base, 0, 1, DeltaChoice::kBitmap).tensors[0].bytes, 6400u * 2 / 16);
  EXPECT_EQ(delta_of(base, base).tensors[0].bytes, 0u);
  // 46 % changed: 1/16 + 0.46 of dense.
  Bf16Tensors target = base;
  for (size_t i = 0; i < 2944; ++i) target["w"].bits[2 * i] = 2;
  const Delta delta = delta_of(base, target);
  EXPECT_EQ(delta.tensors[0].encoding, DeltaEncoding::kBitmap);
  EXPECT_DOUBLE_EQ(static_cast<double>(delta.tensors[0].bytes) / 12800, 0.0625 + 0.46);
  // Break-even at one change in 32.
  for (const size_t n : {199u, 200u, 201u}) {
    target = base;
    for (size_t i = 0; i < n; ++i) target["w"].bits[7 * i] = 2;
    EXPECT_EQ(delta_of(base, target).tensors[0].encoding,
              n < 200 ? DeltaEncoding::kPairs : DeltaEncoding::kBitmap);
  }
}

TEST(Delta, AChainNeedsEveryLink) {
  const Bf16Tensors zero = random_tensors(1), one = changed(zero, 10, 1), two = changed(one, 10, 2);
  const Delta first = delta_of(zero, one, 0, 10), second = delta_of(one, two, 10, 20);
  Bf16Tensors here = zero;
  EXPECT_TRUE(fails_with(apply_delta(second, 0, here), Code::kInvalidArgument, "from step 10 to 20",
                         "at step 0", "a link is missing"));
  // The right step over the wrong tensors is no better.
  EXPECT_TRUE(fails_with(apply_delta(second, 10, here), Code::kInvalidArgument, "another base"));
  EXPECT_EQ(here, zero);
  ASSERT_OK(apply_delta(first, 0, here));
  ASSERT_OK(apply_delta(second, 10, here));
  EXPECT_EQ(here, two);
  EXPECT_TRUE(fails_with(apply_delta(second, 20, here), Code::kInvalidArgument, "link"));
}

TEST(Delta, APromiseThatDoesNotHoldChangesNothing) {
  const Bf16Tensors base = random_tensors(1), target = changed(base, 10, 1);
  Delta delta = delta_of(base, target);
  delta.target_hash[3] ^= 1;
  Bf16Tensors here = base;
  EXPECT_TRUE(fails_with(apply_delta(delta, 0, here), Code::kCorrupt, "promises"));
  EXPECT_EQ(here, base);
}

TEST(Delta, OtherTensorsAreRefused) {
  const Bf16Tensors base = random_tensors(1);
  Bf16Tensors other = base;
  other.erase("a");
  EXPECT_TRUE(fails_with(make_delta(base, other, 0, 1), Code::kInvalidArgument, "4 tensors", "3"));
  other = base;
  other["a"].shape = {100, 64};
  EXPECT_TRUE(fails_with(make_delta(base, other, 0, 1), Code::kInvalidArgument, "no a of"));
  EXPECT_TRUE(fails_with(make_delta(base, base, 5, 5), Code::kInvalidArgument, "not later"));
}

TEST(Delta, EveryFlippedByteIsAnError) {
  Bf16Tensors base;
  base["w"] = {{3, 7}, std::vector<uint16_t>(21, 5)};
  Bf16Tensors target = base;
  target["w"].bits[2] = 9;
  const std::vector<std::byte> file = make_delta(base, target, 0, 1).value();
  for (size_t i = 0; i < file.size(); ++i) {
    std::vector<std::byte> damaged = file;
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(parse_delta(damaged, "delta").has_value()) << i;
    damaged = file;
    damaged.resize(i);
    EXPECT_FALSE(parse_delta(damaged, "delta").has_value()) << i;
  }
  std::vector<std::byte> longer = file;
  longer.push_back({});
  EXPECT_TRUE(fails_with(parse_delta(longer, "delta"), Code::kCorrupt, "delta"));
}

}  // namespace
}  // namespace forebay::train
