// A copied trunk gives the bits of the mapped one, takes what its extents say, and fails as one error.
#include "model/trunk_copy.h"

#include <cstring>
#include <filesystem>
#include <tuple>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "model/tensor_role.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;

struct Opened {
  explicit Opened(const std::filesystem::path& path) : storage(make_posix_storage()) {
    file = std::make_unique<GgufFile>(GgufFile::open(*storage, path).value());
    tensors = trunk_tensors(ModelConfig::from_gguf(*file).value(), *file, nullptr);
  }

  std::unique_ptr<Storage> storage;
  std::unique_ptr<GgufFile> file;
  TrunkTensors tensors;
};

class CopiedTrunk : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path path() const { return testing::converted_vectors(GetParam(), "q8_0"); }
};

TEST_P(CopiedTrunk, GivesTheBitsOfTheMappedOne) {
  std::vector<int32_t> ids = testing::expected_of(GetParam()).ints("ids");
  ids.resize(40);
  LoadedModel mapped(path());
  const std::vector<float> want = mapped.logits(ids);
  EXPECT_EQ(mapped.model->trunk_copy_bytes(), 0u);
  for (const ExpertPlacement experts : {ExpertPlacement::kMapped, ExpertPlacement::kResident}) {
    ModelOptions options;
    options.copy_trunk = true;
    options.experts = experts;
    LoadedModel copied(path(), 2, best_isa(), options);
    EXPECT_GT(copied.model->trunk_copy_bytes(), 0u);
    const std::vector<float> got = copied.logits(ids);
    EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)), 0) << name_of(experts);
  }
}

TEST_P(CopiedTrunk, HasTheBytesOfTheFile) {
  Opened m(path());
  MemoryBudget budget;
  for (const int n_threads : {1, 3}) {
    ThreadPool pool(n_threads);
    const Result<TrunkCopy> copy = TrunkCopy::read(*m.storage, *m.file, m.tensors.trunk, pool, budget);
    ASSERT_OK(copy);
    EXPECT_EQ(budget.used_bytes(), extent_bytes(trunk_extents(m.tensors.trunk)));
    for (const TensorInfo* tensor : m.tensors.trunk) {
      const std::byte* data = copy->find(*tensor);
      ASSERT_NE(data, nullptr) << tensor->name;
      EXPECT_EQ(std::memcmp(data, m.file->bytes(*tensor).data(), tensor->bytes), 0) << tensor->name;
    }
    TensorInfo beyond;
    beyond.offset = m.file->file_bytes() + (uint64_t{1} << 20);
    beyond.bytes = 1;
    EXPECT_EQ(copy->find(beyond), nullptr);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST_P(CopiedTrunk, AFailedReadNamesTensorAndFile) {
  Opened m(path());
  ThreadPool pool(2);
  int n = 1;
  for (;; ++n) {
    FaultyStorage faulty(*m.storage, {.op = StorageOp::kRead, .fail_at = n});
    MemoryBudget budget;
    const Result<TrunkCopy> copy = TrunkCopy::read(faulty, *m.file, m.tensors.trunk, pool, budget);
    if (faulty.n_faults() == 0) {
      ASSERT_OK(copy);
      break;
    }
    ASSERT_FALSE(copy);
    EXPECT_EQ(copy.error().code, Code::kIo);
    EXPECT_NE(copy.error().message.find(".weight"), std::string::npos) << copy.error().message;
    EXPECT_NE(copy.error().message.find(path().filename().string()), std::string::npos)
        << copy.error().message;
    EXPECT_EQ(budget.used_bytes(), 0u);
  }
  EXPECT_GT(n, 1);

  FaultyStorage unopened(*m.storage, {.op = StorageOp::kOpen, .fail_at = 1});
  MemoryBudget budget;
  EXPECT_FALSE(TrunkCopy::read(unopened, *m.file, m.tensors.trunk, pool, budget));
}

INSTANTIATE_TEST_SUITE_P(Families, CopiedTrunk,
                         ::testing::Values("qwen3", "qwen3moe", "qwen35moe", "qwen4exp"),
                         [](const auto& i) { return i.param; });

TEST(TrunkCopy, AFileThatBecameShorterIsAnErrorThatNamesTheTensor) {
  TemporaryDirectory folder;
  const std::filesystem::path path = folder / "short.gguf";
  std::filesystem::copy_file(testing::converted_vectors("qwen3moe", "q8_0"), path);
  Opened m(path);
  uint64_t end = 0;
  for (const TensorInfo* tensor : m.tensors.trunk) end = std::max(end, tensor->offset + tensor->bytes);
  std::filesystem::resize_file(path, end - 1);
  ThreadPool pool(2);
  MemoryBudget budget;
  const Result<TrunkCopy> copy = TrunkCopy::read(*m.storage, *m.file, m.tensors.trunk, pool, budget);
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code, Code::kIo);
  EXPECT_NE(copy.error().message.find(".weight: "), std::string::npos) << copy.error().message;
  EXPECT_NE(copy.error().message.find("short.gguf"), std::string::npos) << copy.error().message;
}

TEST(TrunkCopy, ABudgetThatIsTooSmallIsNeverExceeded) {
  Opened m(testing::converted_vectors("qwen3moe", "q8_0"));
  const uint64_t needed = extent_bytes(trunk_extents(m.tensors.trunk));
  ThreadPool pool(1);
  MemoryBudget small(needed - 1), enough(needed);
  const Result<TrunkCopy> refused = TrunkCopy::read(*m.storage, *m.file, m.tensors.trunk, pool, small);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOutOfMemory);
  EXPECT_EQ(small.peak_bytes(), 0u);
  ASSERT_OK(TrunkCopy::read(*m.storage, *m.file, m.tensors.trunk, pool, enough));
}

TEST(TrunkCopy, ExtentsAreWholePagesThatDoNotMeet) {
  std::vector<TensorInfo> tensors(4);
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const std::pair<uint64_t, uint64_t> ranges[] = {
      {5 * kMiB, 1}, {100, 4096}, {8192 + 4096, 100}, {5 * kMiB, 64}};
  for (size_t i = 0; i < tensors.size(); ++i) std::tie(tensors[i].offset, tensors[i].bytes) = ranges[i];
  tensors[3].shard = 1;
  const std::vector<TrunkExtent> extents =
      trunk_extents({&tensors[0], &tensors[1], &tensors[2], &tensors[3]});
  ASSERT_EQ(extents.size(), 3u);
  // 100 to 4,196 is two pages; the page at 12,288 is near them.
  EXPECT_EQ(extents[0].first, 0u);
  EXPECT_EQ(extents[0].length, 4u * 4096);
  EXPECT_EQ(extents[1].first, 5 * kMiB);
  EXPECT_EQ(extents[1].length, 4096u);
  EXPECT_EQ(extents[2].shard, 1);
  EXPECT_EQ(extent_bytes(extents), 6u * 4096);
  EXPECT_EQ(extent_bytes({}), 0u);
}

}  // namespace
}  // namespace forebay
