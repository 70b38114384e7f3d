// Deltas between safetensors files of every float type.
#include "train/anchor/delta_files.h"

#include <cstring>

#include <gtest/gtest.h>

#include "safetensors/safetensors.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"
#include "tensor/half.h"

namespace forebay::train {
namespace {

void write(MemoryStorage& storage, const Path& path, const std::vector<float>& wide,
           const std::vector<uint16_t>& narrow, const std::map<std::string, std::string>& metadata = {}) {
  const std::vector<int32_t> ids = {1, 2};
  const std::vector<SafeTensorData> tensors = {
      {"ids", SafeType::kI32, {2}, std::as_bytes(std::span(ids))},
      {"narrow", SafeType::kBF16, {narrow.size()}, std::as_bytes(std::span(narrow))},
      {"wide", SafeType::kF32, {wide.size()}, std::as_bytes(std::span(wide))}};
  ASSERT_OK(write_safetensors(storage, path, tensors, metadata));
}

TEST(DeltaFiles, TargetIsReachedAndUnchangedFloatsKeepTheirBits) {
  MemoryStorage storage;
  // 1 + 2^-20 and 1 are the same bf16; 2 is not.
  write(storage, "base", {1.0f + 0x1p-20f, 1.0f, -0.0f}, {0x3f80, 0x8000});
  write(storage, "next", {1.0f, 2.0f + 0x1p-20f, 0.0f}, {0x3f80, 0x0000}, {{"step", "7"}});
  const Bf16Tensors base = read_bf16(storage, "base").value(), next = read_bf16(storage, "next").value();
  EXPECT_EQ(step_of(storage, "base").value(), std::nullopt);
  EXPECT_EQ(step_of(storage, "next").value(), 7u);
  const Delta delta = parse_delta(make_delta(base, next, 0, 7).value(), "d").value();
  EXPECT_EQ(delta.n_changed(), 3u);
  Bf16Tensors here = base;
  ASSERT_OK(apply_delta(delta, 0, here));
  ASSERT_OK(write_with(storage, "base", here, 7, "out"));
  EXPECT_EQ(read_bf16(storage, "out").value(), next);
  EXPECT_EQ(step_of(storage, "out").value(), 7u);
  const SafetensorsFile out = SafetensorsFile::open(storage, "out").value();
  std::vector<float> wide(3);
  ASSERT_OK(out.read_f32(*out.find("wide"), 0, wide));
  EXPECT_EQ(wide[0], 1.0f + 0x1p-20f);
  EXPECT_EQ(wide[1], 2.0f);
  EXPECT_FALSE(std::signbit(wide[2]));
  EXPECT_NE(out.find("ids"), nullptr);
}

TEST(DeltaFiles, TypesThatAreNotReadAreNamed) {
  MemoryStorage storage;
  const std::vector<double> values = {1};
  const std::vector<SafeTensorData> tensors = {{"x", SafeType::kF64, {1}, std::as_bytes(std::span(values))}};
  ASSERT_OK(write_safetensors(storage, "f", tensors));
  EXPECT_TRUE(fails_with(read_bf16(storage, "f"), Code::kUnsupported, "x is F64"));
}

}  // namespace
}  // namespace forebay::train
