// The live cache and a replay of what it was asked for: the same misses, whatever the policy.
#include <gtest/gtest.h>

#include "experts/expert_cache.h"
#include "logs.h"
#include "replay/simulate.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

using testing::SyntheticRoutes;
using testing::SyntheticShape;

/// A file of experts whose blocks have different sizes.
struct ExpertFile {
  explicit ExpertFile(const SyntheticShape& shape) : path(folder / "experts.bin") {
    uint64_t offset = 0;
    for (int b = 0; b < shape.n_blocks; ++b) {
      ExpertPlanes& block = blocks.emplace_back();
      for (ExpertMatrices* plane : {&block.gate, &block.up, &block.down}) {
        plane->file = path;
        plane->file_offset = offset;
        plane->first.n_rows = 2 + 3 * b;
        plane->first.n_cols = 500;
        plane->first.row_stride_bytes = 2000;
        plane->expert_stride = plane->first.n_rows * 2000;
        plane->n_experts = shape.n_experts;
        offset += static_cast<uint64_t>(plane->expert_stride * shape.n_experts);
      }
    }
    const auto file = storage->create(path).value();
    EXPECT_OK(file->append(std::vector<std::byte>(offset)));
    EXPECT_OK(file->close());
  }

  TemporaryDirectory folder;
  std::unique_ptr<Storage> storage = make_posix_storage();
  Path path;
  std::vector<ExpertPlanes> blocks;
};

/// A window as a layer handles it: all rows are routed, then their experts are asked for, in waves if they
/// must.
void run_window(SyntheticRoutes& routes, const SyntheticShape& shape, int n_rows, RoutePhase phase,
                ExpertCache& cache, TraceWriter& writer) {
  DistinctExperts distinct(shape.n_experts);
  for (int b = 0; b < shape.n_blocks; ++b) {
    distinct.clear();
    for (int row = 0; row < n_rows; ++row) {
      const RouteEvent event = routes.row_of(b, row, phase);
      cache.on_route(event);
      writer.on_route(event);
      for (const int32_t e : event.chosen) distinct.add(static_cast<uint16_t>(e));
    }
    const std::span<const uint16_t> sorted = distinct.sorted();
    const std::vector<int32_t> wanted(sorted.begin(), sorted.end());
    const auto wave = static_cast<size_t>(cache.max_experts(b));
    for (size_t first = 0; first < wanted.size(); first += wave) {
      ExpertLease lease =
          cache.request(b, std::span(wanted).subspan(first, std::min(wave, wanted.size() - first))).value();
      while (!lease.take_ready().value().empty()) {
      }
    }
  }
}

class LiveCache : public ::testing::TestWithParam<EvictionPolicy> {};

TEST_P(LiveCache, MissesWhatItsReplayMisses) {
  const SyntheticShape shape{.n_blocks = 3, .n_experts = 24, .n_used = 3};
  ExpertFile file(shape);
  for (const uint64_t n_slots : {4u, 12u, 30u}) {
    ExpertStore store = ExpertStore::open(*file.storage, file.blocks).value();
    TraceHeader header{"live", shape.n_experts, shape.n_used, {}, {}};
    for (int b = 0; b < shape.n_blocks; ++b) {
      header.expert_bytes.push_back(store.expert_bytes(b));
      header.slot_bytes.push_back(store.slot_bytes(b));
    }
    ExpertCacheOptions options;
    options.budget_bytes = n_slots * store.slot_bytes(2);
    options.policy = GetParam();
    options.half_life = 60;
    MemoryBudget memory;
    const auto cache = ExpertCache::create(std::move(store), shape.n_used, options, memory).value();
    MemoryStorage traces;
    const auto writer = TraceWriter::create(traces, "t", header).value();

    SyntheticRoutes routes(shape);
    run_window(routes, shape, 8, RoutePhase::kPrefill, *cache, *writer);
    for (int t = 0; t < 100; ++t)
      run_window(routes, shape, 1 + (t % 9 == 0), RoutePhase::kDecode, *cache, *writer);
    ASSERT_OK(writer->finish());

    const RouteLog log = load_route_log(traces, "t").value();
    const ReplayCounts replayed =
        simulate(log, {options.policy, options.budget_bytes, options.half_life, {}}, {}).counted;
    const ExpertCacheStats live = cache->stats();
    EXPECT_EQ(replayed.n_misses, live.n_misses) << n_slots << " slots";
    EXPECT_EQ(replayed.n_uses, live.n_misses + live.n_hits);
    EXPECT_EQ(replayed.bytes_read, live.bytes_read);
    EXPECT_GT(live.n_evictions, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LiveCache,
                         ::testing::Values(EvictionPolicy::kDecay, EvictionPolicy::kLru, EvictionPolicy::kLfu,
                                           EvictionPolicy::kEma, EvictionPolicy::kNearPick,
                                           EvictionPolicy::kInverse),
                         [](const auto& i) {
                           std::string name(name_of(i.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace forebay
