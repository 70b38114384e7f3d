// What the header says a model takes is what a load takes, to the byte.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "model/layers/scratch.h"
#include "plan/memory_plan.h"
#include "plan/model_footprint.h"
#include "plan/state_bytes.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"
#include "test_models.h"
#include "tiny_model.h"

namespace forebay {
namespace {

using testing::LoadedModel;

TEST(Footprint, AddsUpByRole) {
  const ModelFootprint f = testing::tiny_model();
  // Per block: a norm of 32, 32 x 32, a router of 32 x 4.
  const uint64_t blocks = 2 * 4 * (32 + 1024 + 128);
  EXPECT_EQ(f.trunk_bytes, 2 * 12800 + 128 + blocks);
  // One row of the embedding, all of the head.
  EXPECT_EQ(f.trunk_read_bytes, 128 + 12800 + 128 + blocks);
  EXPECT_EQ(f.copied_bytes, 3u * 128);
  EXPECT_EQ(f.ngram_bytes, 0u);
  EXPECT_EQ(f.draft_bytes, 0u);
  ASSERT_EQ(f.experts.size(), 2u);
  EXPECT_EQ(f.experts[0].n_experts, 4);
  EXPECT_EQ(f.experts[0].bytes, 3u * 4 * 32 * 64);
  // Planes of two pages, each a page more than its bytes.
  EXPECT_EQ(f.experts[0].slot_bytes, 3u * (8192 + 4096));
  EXPECT_EQ(f.all_slots_bytes(), 2u * 4 * 36864);
  EXPECT_EQ(f.expert_bytes_per_token(), 2u * 2 * 24576);
}

TEST(Footprint, ATiedEmbeddingIsReadWhole) {
  std::vector<TensorInfo> tensors = testing::tiny_tensors();
  std::erase_if(tensors, [](const TensorInfo& t) { return t.name == "output.weight"; });
  const ModelFootprint f = ModelFootprint::from_tensors(testing::tiny_config(), tensors, false);
  EXPECT_EQ(f.trunk_read_bytes, f.trunk_bytes);
}

TEST(Footprint, FusedPlanesAreReadAsTwo) {
  std::vector<TensorInfo> tensors = testing::tiny_tensors();
  std::erase_if(tensors, [](const TensorInfo& t) {
    return t.name.find("gate_exps") != std::string::npos || t.name.find("up_exps") != std::string::npos;
  });
  for (int block = 0; block < 2; ++block)
    tensors.push_back(
        testing::f32_tensor("blk." + std::to_string(block) + ".ffn_gate_up_exps.weight", {32, 128, 4}));
  const ModelFootprint fused = ModelFootprint::from_tensors(testing::tiny_config(), tensors, false);
  const ModelFootprint apart = testing::tiny_model();
  EXPECT_EQ(fused.experts[1].bytes, apart.experts[1].bytes);
  EXPECT_EQ(fused.experts[1].slot_bytes, apart.experts[1].slot_bytes);
}

TEST(Footprint, TheDraftHeadCountsWhenItIsAskedFor) {
  ModelConfig config = testing::tiny_config();
  config.n_mtp_blocks = 1;
  std::vector<TensorInfo> tensors = testing::tiny_tensors();
  tensors.push_back(testing::f32_tensor("blk.2.nextn.eh_proj.weight", {64, 32}));
  tensors.push_back(testing::f32_tensor("blk.2.nextn.enorm.weight", {32}));
  tensors.push_back(testing::f32_tensor("blk.2.ffn_gate_exps.weight", {32, 64, 4}));
  const ModelFootprint without = ModelFootprint::from_tensors(config, tensors, false);
  const ModelFootprint with = ModelFootprint::from_tensors(config, tensors, true);
  EXPECT_EQ(without.draft_bytes, 0u);
  EXPECT_EQ(without.experts.size(), 2u);
  EXPECT_EQ(with.draft_bytes, 4u * (64 * 32 + 32));
  EXPECT_EQ(with.experts.size(), 3u);
  EXPECT_EQ(with.trunk_bytes, without.trunk_bytes);
  EXPECT_EQ(with.copied_bytes, without.copied_bytes + 128);
  EXPECT_EQ(with.expert_bytes_per_token(), without.expert_bytes_per_token()) << "of the trunk's blocks";
}

struct Case {
  std::string family;  // or "pebble"
  bool draft;
};

class Footprints : public ::testing::TestWithParam<Case> {
 protected:
  std::filesystem::path file() const {
    return GetParam().family == "pebble" ? testing::embedded_model()
                                         : testing::converted_vectors(GetParam().family, "q8_0");
  }
};

TEST_P(Footprints, AreWhatACopiedTrunkReserves) {
  ModelOptions options;
  options.mtp = GetParam().draft;
  options.copy_trunk = true;
  LoadedModel m(file(), 2, best_isa(), options);
  const Result<ModelFootprint> f = ModelFootprint::from_gguf(*m.file, nullptr, GetParam().draft);
  ASSERT_OK(f);
  PlanRequest request;
  request.copy_trunk = true;
  const Result<MemoryPlan> plan = plan_memory(*f, request, {uint64_t{1} << 40, "given"}, assumed_rates());
  ASSERT_OK(plan);
  uint64_t reserved = 0;
  for (const auto& [purpose, bytes] : m.budget.by_purpose())
    if (purpose == "trunk") reserved += bytes;
  EXPECT_GT(reserved, 0u);
  EXPECT_EQ(reserved, m.model->trunk_copy_bytes());
  EXPECT_EQ(reserved + f->embedding_bytes, plan->bytes_of("trunk") + plan->bytes_of("draft_head"));
}

TEST_P(Footprints, AreWhatALoadReserves) {
  constexpr int64_t kChunk = 48;
  constexpr int64_t kContext = 203;  // no multiple of an index block
  ModelOptions options;
  options.max_window = kChunk;
  options.mtp = GetParam().draft;
  options.experts = ExpertPlacement::kResident;
  LoadedModel m(file(), 2, best_isa(), options);
  SequenceState state = m.state(kContext);
  std::vector<int32_t> tokens(7, 1);
  const Span span{&state, tokens, LogitRows::kLast};
  ASSERT_OK(m.model->forward({&span, 1}));
  const Snapshot snapshot = state.snapshot();

  const Result<ModelFootprint> footprint = ModelFootprint::from_gguf(*m.file, nullptr, GetParam().draft);
  ASSERT_OK(footprint);
  EXPECT_EQ(footprint->with_draft, m.model->has_mtp());
  PlanRequest request;
  request.context = kContext;
  request.chunk = kChunk;
  request.n_snapshots = 1;
  const Result<MemoryPlan> plan =
      plan_memory(*footprint, request, {uint64_t{1} << 40, "given"}, assumed_rates());
  ASSERT_OK(plan);

  std::map<std::string, uint64_t> reserved;
  for (const auto& [purpose, bytes] : m.budget.by_purpose())
    reserved[purpose.starts_with("K/V rows") ? "K/V rows" : purpose] = bytes;
  EXPECT_EQ(reserved["small weights"], plan->bytes_of("small_weights"));
  EXPECT_EQ(reserved["scratch"], plan->bytes_of("scratch"));
  EXPECT_EQ(reserved["logits"], plan->bytes_of("logits"));
  EXPECT_EQ(reserved["recurrent state"], plan->state.fixed);
  EXPECT_EQ(reserved["K/V rows"], plan->state.rows);
  EXPECT_EQ(plan->bytes_of("state"), plan->state.sum());
  EXPECT_LE(snapshot.bytes(), plan->bytes_of("snapshots") + 64) << "the token tail comes on top";
  EXPECT_LE(reserved["experts"], plan->arena_bytes);

  const std::set<std::string> planned = {"small weights",   "scratch",  "logits",
                                         "recurrent state", "K/V rows", "experts"};
  for (const auto& [purpose, bytes] : reserved)
    EXPECT_TRUE(planned.contains(purpose) || bytes == 0)
        << "no plan has '" << purpose << "', " << bytes << " bytes";

  const ExpertCache* cache = m.model->expert_cache();
  if (cache == nullptr) {
    EXPECT_TRUE(footprint->experts.empty());
    return;
  }
  const ExpertStore& store = cache->store();
  ASSERT_EQ(store.n_blocks(), static_cast<int>(footprint->experts.size()));
  for (int block = 0; block < store.n_blocks(); ++block) {
    EXPECT_EQ(store.slot_bytes(block), footprint->experts[block].slot_bytes) << "block " << block;
    EXPECT_EQ(store.expert_bytes(block), footprint->experts[block].bytes) << "block " << block;
    EXPECT_EQ(store.n_experts(block), footprint->experts[block].n_experts) << "block " << block;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Footprints,
                         ::testing::Values(Case{"qwen2", false}, Case{"qwen3", false},
                                           Case{"qwen3moe", false}, Case{"qwen3next", false},
                                           Case{"qwen35moe", false}, Case{"qwen4exp", false},
                                           Case{"pebble", false}, Case{"pebble", true}),
                         [](const auto& i) { return i.param.family + (i.param.draft ? "_draft" : ""); });

TEST(Footprint, ReadsHeadersOnly) {
  // pebble's headers with nothing but holes behind them.
  const auto storage = make_posix_storage();
  const std::filesystem::path whole = testing::embedded_model();
  const GgufFile file = *GgufFile::open(*storage, whole);
  uint64_t first = UINT64_MAX;
  for (const TensorInfo& tensor : file.tensors()) first = std::min(first, tensor.offset);

  TemporaryDirectory folder;
  const std::filesystem::path holes = folder / "holes.gguf";
  std::filesystem::copy_file(whole, holes);
  std::filesystem::resize_file(holes, first);
  std::filesystem::resize_file(holes, file.file_bytes());
  const GgufFile sparse = *GgufFile::open(*storage, holes);
  const Result<ModelFootprint> seen = ModelFootprint::from_gguf(sparse, nullptr, true);
  const Result<ModelFootprint> wanted = ModelFootprint::from_gguf(file, nullptr, true);
  ASSERT_OK(seen);
  ASSERT_OK(wanted);
  EXPECT_EQ(seen->trunk_bytes, wanted->trunk_bytes);
  EXPECT_EQ(seen->all_slots_bytes(), wanted->all_slots_bytes());
  EXPECT_EQ(seen->file_bytes, wanted->file_bytes);
}

}  // namespace
}  // namespace forebay
