// The cache under hostile routing: never over budget, always the file's bytes, errors that leave it usable.
#include "experts/expert_cache.h"

#include <cstring>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "experts/mapped_experts.h"
#include "test_experts.h"

namespace forebay {
namespace {

struct Setting {
  EvictionPolicy policy;
  ReadEngine engine;
  bool shelf;
  bool packed;
};
class Settings : public ::testing::TestWithParam<Setting> {};

TEST_P(Settings, HostileRoutingNeverExceedsTheBudget) {
  TestFile file;
  const auto open = [&] { return GetParam().packed ? file.open_pack() : file.open(*file.storage); };
  ExpertStore store = open();
  uint64_t largest = 0;
  for (int b = 0; b < kBlocks; ++b) largest = std::max(largest, store.slot_bytes(b));
  std::mt19937_64 random(5);
  for (uint64_t n_slots : {4u, 9u, 48u}) {
    MemoryBudget memory;
    ExpertCacheOptions options;
    options.budget_bytes = n_slots * largest;
    options.policy = GetParam().policy;
    options.engine = GetParam().engine;
    if (GetParam().shelf) options.shelf_bytes = 2 * largest;
    const auto cache = ExpertCache::create(open(), 4, options, memory).value();
    for (int step = 0; step < 75; ++step) {
      const int block = step % kBlocks;
      const std::vector<int32_t> set = random_set(random, 4);
      // Half of the hints are right.
      if (step % 2 == 0) cache->prefetch(block, set);
      if (step % 3 == 0) cache->prefetch((block + 1) % kBlocks, random_set(random, 4));
      ASSERT_EQ(visit(*cache, block, set), "");
      ASSERT_LE(memory.peak_bytes(), options.budget_bytes);
    }
    const ExpertCacheStats stats = cache->stats();
    EXPECT_EQ(stats.n_hits + stats.n_misses + stats.n_prefetch_used, 300u);
    EXPECT_EQ(stats.n_prefetch_used > 0, GetParam().shelf && n_slots > 4);
    EXPECT_LE(stats.peak_bytes, options.budget_bytes);
    EXPECT_EQ(stats.resident_bytes, memory.used_bytes());
    if (n_slots == 48) {
      EXPECT_LE(stats.n_misses, 48u) << "everything fits: each expert is read once";
    }
  }
}

std::vector<Setting> all_settings() {
  std::vector<Setting> all;
  for (EvictionPolicy policy : {EvictionPolicy::kDecay, EvictionPolicy::kLru, EvictionPolicy::kLfu,
                                EvictionPolicy::kEma, EvictionPolicy::kNearPick, EvictionPolicy::kInverse})
    for (ReadEngine engine : {ReadEngine::kAuto, ReadEngine::kThreads})
      for (bool shelf : {false, true}) all.push_back({policy, engine, shelf, (all.size() / 2) % 2 == 0});
  return all;
}

std::string name_of(const Setting& s) {
  std::string name = fmt::format("{}_{}_{}_{}", name_of(s.policy), name_of(s.engine),
                                 s.shelf ? "shelf" : "no_shelf", s.packed ? "packed" : "in_place");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Settings, ::testing::ValuesIn(all_settings()),
                         [](const auto& i) { return name_of(i.param); });

TEST(ExpertPack, RefusesAnotherModelsPackAndADamagedOne) {
  TestFile file;
  (void)file.open_pack();
  const Path pack = file.folder / "experts.pack";
  std::vector<ExpertPlanes> other = file.blocks;
  other[1].up.file_offset += 4;  // written anew, with longer metadata
  Result<ExpertStore> opened = ExpertStore::open_pack(*file.storage, other, pack);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().message, pack.string() +
                                        ": block 1 was packed from another model or another version "
                                        "of it; forebay pack makes it anew");
  const std::vector<std::byte> good = read_file(*file.storage, pack).value();
  const auto header = parse_pack_header(good, good.size());
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->blocks.size(), 3u);
  for (size_t n : {0, 3, 15, 16, 100, 180}) {
    EXPECT_FALSE(parse_pack_header(std::span(good).first(n), good.size()).has_value()) << n;
  }
  for (size_t at = 0; at < 16 + 3 * 56 + 8; ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{0x10};
    EXPECT_FALSE(parse_pack_header(bad, bad.size()).has_value()) << at;
  }
  EXPECT_FALSE(parse_pack_header(good, good.size() - 4096).has_value()) << "the last expert is cut off";
}

TEST(ExpertPack, AWriteThatFailsLeavesNothing) {
  TestFile file;
  (void)file.open_pack();
  for (int fail_at = 1; fail_at < 60; fail_at += 7) {
    FaultyStorage faulty(*file.storage, {StorageOp::kWrite, fail_at});
    const Path pack = file.folder / "other.pack";
    const Result<void> written = write_expert_pack(faulty, file.blocks, pack, {}, {});
    if (faulty.n_faults() == 0) break;
    EXPECT_FALSE(written.has_value());
    EXPECT_FALSE(std::filesystem::exists(pack));
    EXPECT_FALSE(std::filesystem::exists(pack.string() + ".partial"));
  }
}

TEST(ExpertCache, LruKeepsTheRecentAndDecayTheOftenUsed) {
  TestFile file;
  for (EvictionPolicy policy : {EvictionPolicy::kLru, EvictionPolicy::kDecay}) {
    MemoryBudget memory;
    ExpertCacheOptions options;
    options.policy = policy;
    ExpertStore store = file.open(*file.storage);
    options.budget_bytes = 3 * store.slot_bytes(0);
    const auto cache = ExpertCache::create(std::move(store), 1, options, memory).value();
    for (int i = 0; i < 5; ++i) ASSERT_EQ(visit(*cache, 0, {7}), "");
    for (int32_t e : {1, 2, 3}) ASSERT_EQ(visit(*cache, 0, {e}), "");
    const uint64_t hits = cache->stats().n_hits;
    ASSERT_EQ(visit(*cache, 0, {7}), "");
    EXPECT_EQ(cache->stats().n_hits - hits, policy == EvictionPolicy::kDecay ? 1u : 0u);
  }
}

TEST(ExpertCache, BudgetsBelowOneTokenAreRefusedWithTheNumber) {
  TestFile file;
  MemoryBudget memory;
  ExpertStore store = file.open(*file.storage);
  const uint64_t least = 4 * store.slot_bytes(2);
  ExpertCacheOptions options;
  options.budget_bytes = least - 1;
  const auto cache = ExpertCache::create(std::move(store), 4, options, memory);
  ASSERT_FALSE(cache.has_value());
  EXPECT_EQ(cache.error().message, "expert budget: " + std::to_string(least - 1) +
                                       " bytes, one token needs 4 experts at once: at least " +
                                       std::to_string(least) + " bytes");
}

TEST(ExpertCache, ResizingGivesBytesBackAtOnce) {
  TestFile file;
  MemoryBudget memory;
  ExpertStore store = file.open(*file.storage);
  const uint64_t slot = store.slot_bytes(2);
  ExpertCacheOptions options;
  options.budget_bytes = 100 * slot;
  const auto cache = ExpertCache::create(std::move(store), 4, options, memory).value();
  std::mt19937_64 random(6);
  for (int i = 0; i < 30; ++i) ASSERT_EQ(visit(*cache, i % kBlocks, random_set(random, 8)), "");
  ASSERT_GT(memory.used_bytes(), 8 * slot);
  ASSERT_TRUE(cache->resize(6 * slot).has_value());
  EXPECT_LE(memory.used_bytes(), 6 * slot);
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(visit(*cache, i % kBlocks, random_set(random, 4)), "");
    ASSERT_LE(memory.used_bytes(), 6 * slot);
  }
  EXPECT_FALSE(cache->resize(slot).has_value());
}

TEST(ExpertCache, AFailedReadIsAnErrorOfItsRequestAndNothingElse) {
  TestFile file;
  for (int fail_at = 1;; ++fail_at) {
    FaultyStorage faulty(*file.storage, {StorageOp::kRead, fail_at});
    MemoryBudget memory;
    ExpertCacheOptions options;
    ExpertStore store = file.open(faulty);
    options.budget_bytes = 6 * store.slot_bytes(2);
    const auto cache = ExpertCache::create(std::move(store), 4, options, memory).value();
    int n_errors = 0;
    std::mt19937_64 random(7);
    for (int i = 0; i < 12; ++i) n_errors += !visit(*cache, i % kBlocks, random_set(random, 4)).empty();
    if (faulty.n_faults() == 0) break;
    EXPECT_EQ(n_errors, 1) << "fault " << fail_at;
    ASSERT_LE(memory.peak_bytes(), options.budget_bytes);
    if (fail_at > 40) fail_at += 20;  // the later ones are alike
  }
}

TEST(ExpertCache, AFileThatShrinksIsNamedWithOffsetAndSizes) {
  TestFile file;
  MemoryBudget memory;
  ExpertStore store = file.open(*file.storage);
  ExpertCacheOptions options;
  options.budget_bytes = 8 * store.slot_bytes(2);
  const auto cache = ExpertCache::create(std::move(store), 4, options, memory).value();
  std::filesystem::resize_file(file.path, 10'000);
  const std::string message = visit(*cache, 2, {5});
  EXPECT_NE(message.find("expert 5 of block 2: "), std::string::npos) << message;
  EXPECT_NE(message.find("short read at offset"), std::string::npos) << message;
}

TEST(ExpertCache, DroppingALeaseWhileReadsRunIsSafe) {
  TestFile file;
  MemoryBudget memory;
  ExpertStore store = file.open(*file.storage);
  ExpertCacheOptions options;
  options.budget_bytes = 4 * store.slot_bytes(2);
  const auto cache = ExpertCache::create(std::move(store), 4, options, memory).value();
  std::mt19937_64 random(8);
  for (int i = 0; i < 300; ++i) {
    const std::vector<int32_t> set = random_set(random, 4);
    const Result<ExpertLease> dropped = cache->request(i % kBlocks, set);
    ASSERT_TRUE(dropped.has_value()) << dropped.error().message;
  }
  EXPECT_EQ(visit(*cache, 1, {1, 2, 3, 4}), "");
}

TEST(MappedExperts, GiveViewsAtOnce) {
  std::vector<float> data(3 * kExperts * 8);
  std::iota(data.begin(), data.end(), 0.0f);
  const auto plane = [&](int p) {
    ExpertMatrices m;
    m.first = {reinterpret_cast<const std::byte*>(data.data() + p * kExperts * 8), DType::kF32, 2, 4, 16};
    m.expert_stride = 32;
    m.n_experts = kExperts;
    return m;
  };
  MappedExperts experts({{plane(0), plane(1), plane(2)}});
  EXPECT_EQ(experts.max_experts(0), kExperts);
  ExpertLease lease = experts.request(0, std::vector<int32_t>{3, 9}).value();
  const std::span<const ResidentExpert> ready = lease.take_ready().value();
  ASSERT_EQ(ready.size(), 2u);
  EXPECT_EQ(*reinterpret_cast<const float*>(ready[1].down.data),
            static_cast<float>(2 * kExperts * 8 + 9 * 8));
  EXPECT_TRUE(lease.take_ready().value().empty());
}

}  // namespace
}  // namespace forebay
