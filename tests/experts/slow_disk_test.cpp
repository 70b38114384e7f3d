// A disk that takes its time: reads of a block are under way together, and what computes never sees a slot
// that is still being filled.
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "experts/expert_cache.h"
#include "test_experts.h"

namespace forebay {
namespace {

using std::chrono::microseconds;

struct Meter {
  std::atomic<int> n_now = 0, n_most = 0, n_reads = 0;
};

class SlowFile : public ReadableFile {
 public:
  SlowFile(std::unique_ptr<ReadableFile> below, Meter& meter, int longest_us)
      : below_(std::move(below)), meter_(meter), longest_us_(longest_us) {}

  const Path& path() const override { return below_->path(); }
  uint64_t size() const override { return below_->size(); }
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
    const int now = ++meter_.n_now;
    for (int most = meter_.n_most; now > most && !meter_.n_most.compare_exchange_weak(most, now);) {
    }
    // Every read takes another time, so that they end in another order than they began.
    const int n = ++meter_.n_reads;
    std::this_thread::sleep_for(microseconds(longest_us_ / 2 + n * 7919 % (longest_us_ / 2)));
    Result<void> read = below_->read_at(offset, out);
    --meter_.n_now;
    return read;
  }
  Result<std::unique_ptr<Mapping>> map() override { return below_->map(); }

 private:
  std::unique_ptr<ReadableFile> below_;
  Meter& meter_;
  const int longest_us_;
};

class SlowStorage : public Storage {
 public:
  SlowStorage(Storage& below, int longest_us) : below_(below), longest_us_(longest_us) {}
  Result<std::unique_ptr<ReadableFile>> open(const Path& path) override {
    return std::unique_ptr<ReadableFile>(
        std::make_unique<SlowFile>(below_.open(path).value(), meter, longest_us_));
  }
  Result<std::unique_ptr<WritableFile>> create(const Path& path) override { return below_.create(path); }
  Result<void> rename(const Path& from, const Path& to) override { return below_.rename(from, to); }
  Result<void> remove(const Path& path) override { return below_.remove(path); }
  bool exists(const Path& path) override { return below_.exists(path); }

  Meter meter;

 private:
  Storage& below_;
  const int longest_us_;
};

ExpertCacheOptions threaded(uint64_t budget_bytes) {
  ExpertCacheOptions options;
  options.budget_bytes = budget_bytes;
  options.engine = ReadEngine::kThreads;
  return options;
}

TEST(SlowDisk, AllMissesOfABlockAreUnderWayTogether) {
  TestFile file;
  SlowStorage slow(*file.storage, 40'000);
  MemoryBudget memory;
  ExpertStore store = file.open(slow);
  const ExpertCacheOptions options = threaded(8 * store.slot_bytes(0));
  const auto cache = ExpertCache::create(std::move(store), 4, options, memory).value();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(visit(*cache, 0, {1, 5, 9, 13}), "");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(slow.meter.n_reads, 12);
  EXPECT_EQ(slow.meter.n_most, 12) << "three planes of four experts";
  // One after the other they take at least 12 x 20 ms.
  EXPECT_LT(took.count(), 0.2);
  EXPECT_GT(cache->stats().wait_seconds, 0.019);
  EXPECT_GE(cache->stats().busy_seconds, cache->stats().wait_seconds * 0.9);
}

TEST(SlowDisk, SlotsAreNeverSeenHalfFilledOrReusedTooSoon) {
  TestFile file;
  for (int run = 0; run < 20; ++run) {
    SlowStorage slow(*file.storage, 600);
    MemoryBudget memory;
    ExpertStore store = file.open(slow);
    ExpertCacheOptions options = threaded(7 * store.slot_bytes(2));
    options.shelf_bytes = 2 * store.slot_bytes(2);
    const auto cache = ExpertCache::create(std::move(store), 4, options, memory).value();
    std::mt19937_64 random(static_cast<uint64_t>(run));
    for (int step = 0; step < 12; ++step) {
      const int block = step % kBlocks;
      cache->prefetch((block + 1) % kBlocks, random_set(random, 2));
      // Some requests are given up while their reads run.
      if (step % 5 == 4) {
        ASSERT_TRUE(cache->request(block, random_set(random, 4)).has_value());
      } else {
        ASSERT_EQ(visit(*cache, block, random_set(random, 4)), "");
      }
      ASSERT_LE(memory.used_bytes(), options.budget_bytes);
    }
  }
}

}  // namespace
}  // namespace forebay
