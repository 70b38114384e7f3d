// The live cache and a replay of what it was asked for: the same misses, whatever the policy.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "experts/expert_cache.h"
#include "kernels/router.h"
#include "logs.h"
#include "replay/simulate.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

using testing::SyntheticRoutes;
using testing::SyntheticShape;

/// A file of experts whose blocks have different sizes.
struct ExpertFile {
  ExpertFile(const SyntheticShape& shape, std::unique_ptr<Storage> in)
      : storage(std::move(in)), path(folder / "experts.bin") {
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
  std::unique_ptr<Storage> storage;
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
  ExpertFile file(shape, make_posix_storage());
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

/// Rounds logits as a trace does. Otherwise two that become equal would stand in the trace in their true
/// order, which the trace does not tell.
class RoundedLogits : public RouteObserver {
 public:
  RoundedLogits(int n_used, RouteObserver& next) : next_(next), ids_(n_used), weights_(n_used) {}

  void on_route(const RouteEvent& event) override {
    logits_.assign(event.logits_E.begin(), event.logits_E.end());
    for (float& logit : logits_) logit = std::nearbyint(logit * kLogitSteps) / kLogitSteps;
    route_top_k(logits_, static_cast<int>(ids_.size()), ids_.data(), weights_.data());
    RouteEvent rounded = event;
    rounded.logits_E = logits_;
    rounded.chosen = ids_;
    next_.on_route(rounded);
  }

 private:
  RouteObserver& next_;
  std::vector<int32_t> ids_;
  std::vector<float> logits_, weights_;
};

/// The experts of a request as the layer chooses them, from what the live cache says is there.
std::vector<int32_t> route_live(const RouteLog& log, const LoggedRequest& request, const ReplayConfig& config,
                                const ExpertCache& cache) {
  const int n_experts = log.header.n_experts, k = log.header.n_used;
  const RouteBias& bias = request.phase == RoutePhase::kPrefill ? config.prompt_bias : config.bias;
  std::vector<uint8_t> resident(n_experts);
  for (int e = 0; e < n_experts; ++e) resident[e] = cache.resident({request.block, e});
  std::vector<int32_t> ids(k);
  std::vector<float> weights(k);
  DistinctExperts distinct(n_experts);
  for (uint32_t r = 0; r < request.n_rows; ++r) {
    const RouteCandidates row = log.candidates(request.first_row + r);
    std::vector<float> logits(n_experts, -1e9f);
    for (size_t i = 0; i < row.ids.size(); ++i)
      logits[row.ids[i]] = -static_cast<float>(row.gaps[i]) / kLogitSteps;
    if (bias.lambda > 0 && r < request.n_rows - request.n_exact)
      route_top_k_biased(logits, k, bias, resident, ids.data(), weights.data());
    else
      route_top_k(logits, k, ids.data(), weights.data());
    for (const int32_t e : ids) distinct.add(static_cast<uint16_t>(e));
  }
  const std::span<const uint16_t> sorted = distinct.sorted();
  return {sorted.begin(), sorted.end()};
}

/// What a cache does over a log when hints guess as a replay's do.
Result<ExpertCacheStats> run_live(const RouteLog& log, const ReplayConfig& config, const ExpertFile& file,
                                  ReadEngine engine) {
  ExpertCacheOptions options;
  options.budget_bytes = config.budget_bytes;
  options.shelf_bytes = config.shelf_bytes;
  options.policy = *config.policy;
  options.half_life = config.half_life;
  options.engine = engine;
  MemoryBudget memory;
  ExpertStore store = TRY(ExpertStore::open(*file.storage, file.blocks));
  const std::unique_ptr<ExpertCache> cache =
      TRY(ExpertCache::create(std::move(store), log.header.n_used, options, memory));
  std::vector<uint32_t> votes(log.header.n_experts);
  std::vector<uint16_t> guessed;
  for (size_t r = 0; r < log.requests.size(); ++r) {
    const LoggedRequest& request = log.requests[r];
    const std::vector<int32_t> wanted = route_live(log, request, config, *cache);
    const auto wave = static_cast<size_t>(cache->max_experts(request.block));
    for (size_t first = 0; first < wanted.size(); first += wave) {
      const size_t n = std::min(wave, wanted.size() - first);
      ExpertLease lease = TRY(cache->request(request.block, std::span(wanted).subspan(first, n)));
      while (true) {
        const std::span<const ResidentExpert> ready = TRY(lease.take_ready());
        if (ready.empty()) break;
      }
    }
    if (r + 1 == log.requests.size() || log.requests[r + 1].block <= request.block) continue;
    guess_experts(log, r + 1, {}, votes, guessed);
    const std::vector<int32_t> ahead(guessed.begin(), guessed.end());
    cache->prefetch(request.block + 1, ahead);
  }
  return cache->stats();
}

class LiveCacheAhead : public ::testing::Test {
 protected:
  LiveCacheAhead() {
    ExpertStore store = ExpertStore::open(*on_disk.storage, on_disk.blocks).value();
    TraceHeader header{"live", shape.n_experts, shape.n_used, {}, {}};
    for (int b = 0; b < shape.n_blocks; ++b) {
      header.expert_bytes.push_back(store.expert_bytes(b));
      header.slot_bytes.push_back(store.slot_bytes(b));
    }
    MemoryStorage traces;
    const auto writer = TraceWriter::create(traces, "t", header).value();
    RoundedLogits rounded(shape.n_used, *writer);
    SyntheticRoutes routes(shape);
    for (int prompt = 0; prompt < 3; ++prompt) {
      routes.window(RoutePhase::kPrefill, 40, rounded);
      routes.window(RoutePhase::kPrefill, 24, rounded);
      for (int t = 0; t < 40; ++t) routes.window(RoutePhase::kDecode, 1, rounded);
    }
    EXPECT_OK(writer->finish());
    log = load_route_log(traces, "t").value();
  }

  /// Shelves of 0, 2 and 4 slots, each with exact routing, a biased answer, and a biased prompt too.
  std::vector<ReplayConfig> configs() const {
    std::vector<ReplayConfig> all;
    for (const auto& [bias, prompt_bias] :
         {std::pair(0.0f, 0.0f), std::pair(0.7f, 0.0f), std::pair(0.5f, 0.8f)})
      for (const uint64_t shelf_slots : {0u, 2u, 4u}) {
        ReplayConfig& config = all.emplace_back();
        config.policy = EvictionPolicy::kDecay;
        config.budget_bytes = 20 * log.header.slot_bytes[3];
        config.half_life = 60;
        config.bias = {bias, 1, 6};
        config.prompt_bias = {prompt_bias, 2, 6};
        config.shelf_bytes = shelf_slots * log.header.slot_bytes[3];
      }
    return all;
  }
  static std::string name(const ReplayConfig& config) {
    return fmt::format("bias {}, of prompts {}, shelf {} bytes", config.bias.lambda,
                       config.prompt_bias.lambda, config.shelf_bytes);
  }

  const SyntheticShape shape{.n_blocks = 4, .n_experts = 24, .n_used = 3};
  const ExpertFile on_disk{shape, make_posix_storage()};
  RouteLog log;
};

TEST_F(LiveCacheAhead, ThePromptsTailIsExact) {
  // The 64 rows of a prompt: its last 32 are exact, 8 of the first window's and all 24 of the second's.
  EXPECT_EQ(log.requests[0].n_exact, 8u);
  EXPECT_EQ(log.requests[4].n_exact, 24u);
  EXPECT_EQ(log.requests[8].n_exact, 0u);
}

// What is in the arena hangs on the requests alone, so what is not there when it is asked for does too. How
// much of that the shelf has is a matter of time: a wrong guess keeps its room until its read has ended.
TEST_F(LiveCacheAhead, NeedsFromTheDiskWhatItsReplayNeedsHoweverSlowReadsAre) {
  for (const ReplayConfig& config : configs()) {
    const ReplayCounts replayed = simulate(log, config, {}).counted;
    const ExpertCacheStats live = run_live(log, config, on_disk, ReadEngine::kAuto).value();
    EXPECT_EQ(replayed.n_misses + replayed.n_ahead_used, live.n_misses + live.n_prefetch_used)
        << name(config);
    EXPECT_EQ(replayed.n_uses, live.n_misses + live.n_hits + live.n_prefetch_used) << name(config);
    if (config.shelf_bytes == 0) {
      EXPECT_EQ(replayed.n_misses, live.n_misses) << name(config);
      EXPECT_EQ(replayed.bytes_read, live.bytes_read) << name(config);
    }
  }
}

TEST_F(LiveCacheAhead, TakesFromTheShelfWhatItsReplayTakesWhereReadsEndAtOnce) {
  // Of files without a descriptor the queue's reads end as they are submitted.
  const ExpertFile in_memory(shape, std::make_unique<MemoryStorage>());
  if (make_uring_read_queue(1) == nullptr) GTEST_SKIP() << "no io_uring here";
  for (const ReplayConfig& config : configs()) {
    const ReplayCounts replayed = simulate(log, config, {}).counted;
    const ExpertCacheStats live = run_live(log, config, in_memory, ReadEngine::kUring).value();
    EXPECT_EQ(replayed.n_misses, live.n_misses) << name(config);
    EXPECT_EQ(replayed.n_ahead, live.n_prefetched) << name(config);
    EXPECT_EQ(replayed.n_ahead_used, live.n_prefetch_used) << name(config);
    EXPECT_EQ(replayed.n_uses, live.n_misses + live.n_hits + live.n_prefetch_used) << name(config);
    EXPECT_EQ(replayed.bytes_read, live.bytes_read) << name(config);
    if (config.shelf_bytes > 0) {
      EXPECT_GT(replayed.n_ahead_used, 100u);
      EXPECT_LT(replayed.n_ahead_used, replayed.n_ahead);
    }
    if (config.bias.lambda > 0) {
      EXPECT_GT(replayed.n_swapped, 0u);
    }
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
