/// Files that gguf-py wrote (tools/make_container_fixtures.py), whole and split.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gguf/gguf.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

Result<GgufFile> open_fixture(const std::string& name) {
  const std::unique_ptr<Storage> storage = make_posix_storage();
  return GgufFile::open(*storage, Path(FOREBAY_TEST_DATA) / "gguf" / "fixtures" / name);
}

template <typename T>
std::vector<T> values(const GgufFile& file, const std::string& name) {
  const TensorInfo* tensor = file.find(name);
  if (tensor == nullptr) return {};
  const std::span<const std::byte> bytes = file.bytes(*tensor);
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::string shape(const GgufFile& file, const std::string& name) {
  const TensorInfo* tensor = file.find(name);
  return tensor == nullptr ? "absent" : shape_string(*tensor);
}

void expect_contents(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(*metadata.get_string("general.architecture"), "tiny");
  EXPECT_EQ(*metadata.get_string("general.name"), "Tiny \xc3\xa9\xc3\xa0 \xe6\xb0\xb4");
  EXPECT_EQ(*metadata.get_uint("k.u8"), 200u);
  EXPECT_EQ(*metadata.get_int("k.i8"), -100);
  EXPECT_EQ(*metadata.get_uint("k.u16"), 60000u);
  EXPECT_EQ(*metadata.get_int("k.i16"), -30000);
  EXPECT_EQ(*metadata.get_uint("k.u32"), 4000000000u);
  EXPECT_EQ(*metadata.get_int("k.i32"), -2000000000);
  EXPECT_EQ(*metadata.get_uint("k.u64"), UINT64_MAX);
  EXPECT_EQ(*metadata.get_int("k.i64"), INT64_MIN);
  EXPECT_EQ(*metadata.get_float("k.f32"), double{0.1f});
  EXPECT_EQ(*metadata.get_float("k.f64"), 0.1);
  EXPECT_TRUE(*metadata.get_bool("k.bool"));
  EXPECT_EQ(*metadata.get_ints("k.ints"), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(*metadata.get_floats("k.floats"), (std::vector<double>{0.5, -0.25}));
  EXPECT_EQ(*metadata.get_ints("k.bools"), (std::vector<int64_t>{1, 0}));
  const auto strings = *metadata.get_strings("k.strings");
  EXPECT_EQ(std::vector<std::string>(strings.begin(), strings.end()),
            (std::vector<std::string>{"a", "", "\xe6\xb0\xb4"}));

  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(shape(file, "f32.weight"), "[3, 2]");
  EXPECT_EQ(values<float>(file, "f32.weight"), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(shape(file, "f16.weight"), "[5]");
  EXPECT_EQ(values<uint16_t>(file, "f16.weight"),
            (std::vector<uint16_t>{0x5640, 0x5650, 0x5660, 0x5670, 0x5680}));
  EXPECT_EQ(shape(file, "i32.weight"), "[3, 1, 2]");
  EXPECT_EQ(values<int32_t>(file, "i32.weight"), (std::vector<int32_t>{200, 201, 202, 203, 204, 205}));
  EXPECT_EQ(shape(file, "q8_0.weight"), "[32, 2]");
  EXPECT_EQ(file.find("q8_0.weight")->type, DType::kQ8_0);
  const auto blocks = values<uint8_t>(file, "q8_0.weight");
  ASSERT_EQ(blocks.size(), 68u);
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(blocks[i], i);
}

TEST(GgufFixtures, WholeFile) {
  const Result<GgufFile> file = open_fixture("whole.gguf");
  ASSERT_OK(file);
  EXPECT_EQ(file->n_shards(), 1);
  expect_contents(*file);
}

TEST(GgufFixtures, SplitFileWhoseFirstShardHasNoTensors) {
  for (const char* name : {"split-00001-of-00003.gguf", "split-00003-of-00003.gguf"}) {
    const Result<GgufFile> file = open_fixture(name);
    ASSERT_OK(file);
    EXPECT_EQ(file->n_shards(), 3);
    EXPECT_EQ(file->find("f32.weight")->shard, 1);
    EXPECT_EQ(file->find("q8_0.weight")->shard, 2);
    expect_contents(*file);
  }
}

}  // namespace
}  // namespace forebay
