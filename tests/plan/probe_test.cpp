#include "plan/probe.h"

#include <filesystem>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "plan/machine.h"
#include "plan/probe_file.h"
#include "sizes.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

constexpr ProbeDuration kShort(0.01);

size_t n_files(const TemporaryDirectory& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(Probe, SumsAgree) {
  if (best_isa() == Isa::kReference) GTEST_SKIP() << "no fast instruction set on this machine";
  std::vector<std::byte> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37);
  for (const size_t offset : {0, 1, 8})
    for (const size_t n : {0, 8, 120, 128, 136, 512, 984})
      EXPECT_EQ(probe_detail::sum_avx2(bytes.data() + offset, n),
                probe_detail::sum_ref(bytes.data() + offset, n))
          << n << " bytes at " << offset;
}

TEST(Probe, MemoryAndKernelsHaveRates) {
  ThreadPool pool(2);
  MemoryBudget budget;
  const Result<ProbeBuffer> buffer = ProbeBuffer::allocate(64 * kMiB, pool, budget);
  ASSERT_OK(buffer);
  EXPECT_EQ(buffer->bytes(), 8 * kMiB);
  EXPECT_EQ(budget.used_bytes(), 8 * kMiB);
  EXPECT_GT(buffer->measure_reading(pool, best_isa(), kShort), 1e6);
  KernelContext kernels(pool, best_isa());
  for (const DType type : {DType::kF32, DType::kQ8_0, DType::kQ2_0, DType::kIQ2_XS, DType::kQ4_K})
    EXPECT_GT(buffer->measure_weights(kernels, type, kShort), 1e5) << name_of(type);
  EXPECT_TRUE(is_ok(ProbeBuffer::allocate(0, pool, budget)));
  MemoryBudget small(kMiB / 2);
  EXPECT_TRUE(fails_with(ProbeBuffer::allocate(64 * kMiB, pool, small), Code::kOutOfMemory, "probe"));
}

TEST(ProbeFile, IsReadAndLeavesNothing) {
  TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  uint64_t written = 0;
  {
    Result<ProbeFile> probe = ProbeFile::create(*storage, folder.path(), {.bytes = 20 * kMiB},
                                                [&](uint64_t done, uint64_t) { written = done; }, {});
    ASSERT_OK(probe);
    EXPECT_EQ(n_files(folder), 0u) << "its name is gone at once";
    EXPECT_EQ(probe->bytes(), 20 * kMiB);
    EXPECT_EQ(written, 20 * kMiB);
    EXPECT_EQ(probe->places(3 * kMiB).size(), 6u);
    EXPECT_EQ(probe->places(5000).front(), 0u);
    EXPECT_EQ(probe->places(5000)[1], 8192u);

    MemoryBudget budget;
    const Result<DiskRate> rate =
        measure_disk(probe->file(), probe->places(kMiB),
                     {.blob_bytes = kMiB, .n_in_flight = 4, .duration = kShort}, budget, {});
    ASSERT_OK(rate);
    EXPECT_GT(rate->n_reads, 0u);
    EXPECT_GT(rate->bytes_per_second, 0);
    EXPECT_EQ(rate->blob_bytes, kMiB);
    EXPECT_EQ(rate->direct, probe->file().direct());
    EXPECT_EQ(budget.peak_bytes(), 4 * (kMiB + 4096));

    // What is read is what was written: pieces differ, and none is all zeros.
    std::vector<std::byte> first(4096), second(4096);
    ASSERT_OK(probe->file().read_at(4 * kMiB, first));
    ASSERT_OK(probe->file().read_at(12 * kMiB, second));
    EXPECT_NE(first, second);
    EXPECT_NE(first, std::vector<std::byte>(4096));
  }
  EXPECT_EQ(n_files(folder), 0u);
}

TEST(ProbeFile, FoldersThatDoNotServeAreNamed) {
  const auto storage = make_posix_storage();
  TemporaryDirectory folder;
  EXPECT_TRUE(fails_with(ProbeFile::create(*storage, folder / "none", {}, {}, {}), Code::kIo, "none"));
  EXPECT_TRUE(fails_with(ProbeFile::create(*storage, folder.path(), {.bytes = uint64_t{1} << 60}, {}, {}),
                         Code::kIo, folder.path().string(), "bytes free", std::to_string(uint64_t{1} << 60)));
  const Path file = folder / "file";
  std::ofstream(file) << "x";
  EXPECT_FALSE(ProbeFile::create(*storage, file, {.bytes = kMiB}, {}, {}).has_value());
}

TEST(ProbeFile, AStopLeavesNothing) {
  TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  std::stop_source stop;
  const Result<ProbeFile> probe = ProbeFile::create(
      *storage, folder.path(), {.bytes = 40 * kMiB}, [&](uint64_t, uint64_t) { stop.request_stop(); },
      stop.get_token());
  EXPECT_TRUE(fails_with(probe, Code::kCancelled, "interrupted"));
  EXPECT_EQ(n_files(folder), 0u);
}

TEST(ProbeFile, SlowDisksGetASmallerFile) {
  TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  const Result<ProbeFile> probe = ProbeFile::create(
      *storage, folder.path(), {.bytes = 400 * kMiB, .longest = std::chrono::duration<double>(0)}, {}, {});
  ASSERT_OK(probe);
  EXPECT_LT(probe->bytes(), 400 * kMiB);
}

TEST(ProbeFile, EveryFaultIsAnErrorAndLeavesNothing) {
  for (const StorageOp op : {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kOpen, StorageOp::kSync,
                             StorageOp::kClose, StorageOp::kRead})
    for (int n = 1;; ++n) {
      ASSERT_LT(n, 100);
      TemporaryDirectory folder;
      const auto below = make_posix_storage();
      FaultyStorage storage(*below, {.op = op, .fail_at = n});
      Result<ProbeFile> probe = ProbeFile::create(storage, folder.path(), {.bytes = 20 * kMiB}, {}, {});
      MemoryBudget budget;
      const DiskProbe reads{.blob_bytes = kMiB, .n_in_flight = 2, .duration = kShort};
      const bool read =
          probe && measure_disk(probe->file(), probe->places(kMiB), reads, budget, {}).has_value();
      EXPECT_EQ(n_files(folder), 0u);
      EXPECT_EQ(read, storage.n_faults() == 0) << "fault " << n;
      if (storage.n_faults() == 0 || op == StorageOp::kRead)
        break;  // reads go on for as long as they are told to
    }
}

TEST(Probe, ADiskWithoutPlacesIsAnError) {
  TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  Result<ProbeFile> probe = ProbeFile::create(*storage, folder.path(), {.bytes = kMiB}, {}, {});
  ASSERT_OK(probe);
  MemoryBudget budget;
  EXPECT_TRUE(
      fails_with(measure_disk(probe->file(), probe->places(2 * kMiB), {.blob_bytes = 2 * kMiB}, budget, {}),
                 Code::kInvalidArgument, "2097152"));
}

TEST(Machine, FactsAreInOrder) {
  const MachineFacts facts = machine_facts();
  EXPECT_GE(facts.n_cores, 1);
  EXPECT_GT(facts.memory.total, 0u);
  EXPECT_EQ(facts.isa, best_isa());
}

}  // namespace
}  // namespace forebay
