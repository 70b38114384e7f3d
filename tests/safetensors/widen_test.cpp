#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "safetensors/safetensors.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

template <typename T>
std::vector<float> widen(SafeType type, const std::vector<T>& stored, uint64_t first = 0) {
  MemoryStorage storage;
  // An odd number of bytes before it, so that nothing is aligned.
  const std::byte one_byte{};
  const SafeTensorData tensors[] = {{"t", type, {stored.size()}, std::as_bytes(std::span(stored))},
                                    {"a", type, {0}, {}},
                                    {"z", SafeType::kU8, {1}, {&one_byte, 1}}};
  EXPECT_OK(write_safetensors(storage, "f", tensors));
  const Result<SafetensorsFile> file = SafetensorsFile::open(storage, "f");
  EXPECT_OK(file);
  std::vector<float> out(stored.size() - first);
  EXPECT_OK(file->read_f32(*file->find("t"), first, out));
  return out;
}

TEST(Widen, EveryTypeExactly) {
  using Floats = std::vector<float>;
  const float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(widen<double>(SafeType::kF64, {0.1, -2.5, 1e300}), (Floats{0.1f, -2.5f, kInfinity}));
  EXPECT_EQ(widen<float>(SafeType::kF32, {0.1f, -0.0f}), (Floats{0.1f, -0.0f}));
  EXPECT_EQ(widen<uint16_t>(SafeType::kF16, {0x3c00, 0xc000, 0x0001, 0x7c00, 0x7bff}),
            (Floats{1.0f, -2.0f, 0x1p-24f, kInfinity, 65504.0f}));
  EXPECT_EQ(widen<uint16_t>(SafeType::kBF16, {0x3f80, 0xc040, 0x0001}), (Floats{1.0f, -3.0f, 0x1p-133f}));
  EXPECT_EQ(widen<int64_t>(SafeType::kI64, {-1, (int64_t{1} << 40) + 1}), (Floats{-1.0f, 0x1p40f}));
  EXPECT_EQ(widen<int32_t>(SafeType::kI32, {-7, 16777217}), (Floats{-7.0f, 16777216.0f}));
  EXPECT_EQ(widen<int16_t>(SafeType::kI16, {-32768, 32767}), (Floats{-32768.0f, 32767.0f}));
  EXPECT_EQ(widen<int8_t>(SafeType::kI8, {-128, 127}), (Floats{-128.0f, 127.0f}));
  EXPECT_EQ(widen<uint8_t>(SafeType::kU8, {0, 255}), (Floats{0.0f, 255.0f}));
  EXPECT_EQ(widen<uint8_t>(SafeType::kBool, {0, 1}), (Floats{0.0f, 1.0f}));
}

TEST(Widen, EveryF8) {
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  const std::vector<float> values = widen(SafeType::kF8E4M3, codes);
  EXPECT_EQ(values[0x00], 0.0f);
  EXPECT_TRUE(std::signbit(values[0x80]));
  EXPECT_EQ(values[0x01], 0x1p-9f);  // the smallest subnormal
  EXPECT_EQ(values[0x08], 0x1p-6f);  // the smallest normal
  EXPECT_EQ(values[0x38], 1.0f);
  EXPECT_EQ(values[0x7e], 448.0f);  // the largest
  EXPECT_EQ(values[0xfe], -448.0f);
  EXPECT_TRUE(std::isnan(values[0x7f]));
  EXPECT_TRUE(std::isnan(values[0xff]));
  // Codes of one sign are in the order of their values.
  for (size_t i = 1; i < 0x7f; ++i) EXPECT_LT(values[i - 1], values[i]) << i;
  for (size_t i = 0; i < 0x7f; ++i) EXPECT_EQ(values[i + 0x80], -values[i]) << i;
}

TEST(Widen, RangesAreChecked) {
  EXPECT_EQ(widen<int8_t>(SafeType::kI8, {1, 2, 3}, 1), (std::vector<float>{2, 3}));
  EXPECT_TRUE(widen<int8_t>(SafeType::kI8, {1, 2, 3}, 3).empty());
  MemoryStorage storage;
  const std::byte bytes[4]{};
  const SafeTensorData tensors[] = {{"t", SafeType::kI8, {2, 2}, bytes}};
  ASSERT_OK(write_safetensors(storage, "f", tensors));
  const Result<SafetensorsFile> file = SafetensorsFile::open(storage, "f");
  ASSERT_OK(file);
  std::vector<float> out(4);
  const SafeTensor& tensor = *file->find("t");
  ASSERT_OK(file->read_f32(tensor, 0, out));
  EXPECT_TRUE(fails_with(file->read_f32(tensor, 1, out), Code::kInvalidArgument, "\"t\"", "1 to 5", "4"));
  EXPECT_TRUE(fails_with(file->read_f32(tensor, UINT64_MAX, out), Code::kInvalidArgument, "\"t\""));
}

}  // namespace
}  // namespace forebay
