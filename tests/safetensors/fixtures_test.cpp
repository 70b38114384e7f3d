/// Files that the reference library wrote (tools/make_container_fixtures.py), alone and sharded.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "safetensors/safetensors.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

Result<SafetensorsFile> open_fixture(const std::string& name) {
  const std::unique_ptr<Storage> storage = make_posix_storage();
  return SafetensorsFile::open(*storage, Path(FOREBAY_TEST_DATA) / "safetensors" / "fixtures" / name);
}

void expect_counting(const SafetensorsFile& file, const std::string& name, SafeType type,
                     const std::vector<uint64_t>& shape, float first) {
  const SafeTensor* tensor = file.find(name);
  ASSERT_NE(tensor, nullptr) << name;
  EXPECT_EQ(tensor->type, type) << name;
  EXPECT_EQ(tensor->shape, shape) << name;
  std::vector<float> values(tensor->n_elements());
  ASSERT_OK(file.read_f32(*tensor, 0, values));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], first + static_cast<float>(i)) << name;
}

TEST(SafetensorsFixtures, EveryTypeThatNumpyHas) {
  const Result<SafetensorsFile> file = open_fixture("every_type.safetensors");
  ASSERT_OK(file);
  EXPECT_EQ(file->tensors().size(), 11u);
  EXPECT_EQ(file->metadata(),
            (std::map<std::string, std::string>{{"format", "np"}, {"author", "\xe6\xb0\xb4"}}));
  expect_counting(*file, "f32", SafeType::kF32, {2, 3}, 0);
  expect_counting(*file, "f16", SafeType::kF16, {5}, 100);
  expect_counting(*file, "f64", SafeType::kF64, {2, 2}, 200);
  expect_counting(*file, "i64", SafeType::kI64, {2}, 300);
  expect_counting(*file, "i32", SafeType::kI32, {3}, 400);
  expect_counting(*file, "i16", SafeType::kI16, {1, 3}, 500);
  expect_counting(*file, "i8", SafeType::kI8, {7}, 0);
  expect_counting(*file, "u8", SafeType::kU8, {3}, 100);
  expect_counting(*file, "scalar", SafeType::kF32, {}, 6);
  expect_counting(*file, "none", SafeType::kF32, {0, 3}, 0);
  std::vector<float> bools(2);
  ASSERT_OK(file->read_f32(*file->find("bool"), 0, bools));
  EXPECT_EQ(bools, (std::vector<float>{1, 0}));
}

TEST(SafetensorsFixtures, ADirectoryWithAnIndex) {
  const Result<SafetensorsFile> file = open_fixture("sharded");
  ASSERT_OK(file);
  EXPECT_EQ(file->tensors().size(), 3u);
  expect_counting(*file, "f32", SafeType::kF32, {2, 3}, 0);
  expect_counting(*file, "f16", SafeType::kF16, {5}, 100);
  expect_counting(*file, "i32", SafeType::kI32, {3}, 400);
}

}  // namespace
}  // namespace forebay
