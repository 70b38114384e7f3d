// Damaged or strange models: one clear error each, naming the key or tensor, what was seen and what was
// wanted.
#include "model/config.h"

#include <cmath>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "temporary_directory.h"
#include "test_models.h"

namespace forebay {
namespace {

struct Change {
  std::function<void(GgufMetadata&)> metadata = [](GgufMetadata&) {};
  std::string drop = {};     // a tensor to leave out
  std::string reshape = {};  // a tensor to declare with one row fewer
  std::string poison = {};   // a tensor whose first four bytes become an f32 NaN (in BF16, one in element 1)
};

/// A copy of a model with one thing wrong.
std::filesystem::path altered(const TemporaryDirectory& folder, const std::string& family,
                              const Change& change) {
  const auto storage = make_posix_storage();
  const GgufFile source = GgufFile::open(*storage, testing::converted_vectors(family)).value();
  GgufMetadata metadata = source.metadata();
  change.metadata(metadata);
  const std::filesystem::path out = folder / "altered.gguf";
  GgufWriter writer = GgufWriter::create(*storage, out).value();
  for (const auto& [key, value] : metadata.entries()) writer.set(key, value);
  std::vector<std::pair<const TensorInfo*, uint64_t>> written;
  for (const TensorInfo& tensor : source.tensors()) {
    if (tensor.name == change.drop) continue;
    std::vector<uint64_t> ne(tensor.ne.begin(), tensor.ne.begin() + tensor.n_dims);
    if (tensor.name == change.reshape) --ne.back();
    EXPECT_TRUE(writer.declare(tensor.name, tensor.type, ne).has_value());
    written.emplace_back(&tensor, tensor.bytes / tensor.ne[tensor.n_dims - 1] * ne.back());
  }
  EXPECT_TRUE(writer.write_headers().has_value());
  for (const auto& [tensor, n] : written) {
    std::vector<std::byte> bytes(source.bytes(*tensor).begin(), source.bytes(*tensor).begin() + n);
    if (tensor->name == change.poison) {
      const float nan = NAN;
      std::memcpy(bytes.data(), &nan, sizeof nan);
    }
    EXPECT_TRUE(writer.write_data(bytes).has_value());
  }
  EXPECT_TRUE(writer.finish().has_value());
  return out;
}

std::string load_error(const std::filesystem::path& path, ModelOptions options = {}) {
  const auto storage = make_posix_storage();
  Result<GgufFile> file = GgufFile::open(*storage, path);
  if (!file) return file.error().message;
  ThreadPool pool(1);
  KernelContext kernels(pool, best_isa());
  MemoryBudget budget;
  const Result<Model> model = Model::load(*storage, *file, nullptr, options, kernels, budget);
  return model ? "" : model.error().message;
}

std::string error_with(const std::string& family, const Change& change) {
  const TemporaryDirectory folder;
  return load_error(altered(folder, family, change));
}

TEST(ModelConfig, UnchangedCopiesLoad) {
  for (const std::string& family : testing::kFamilies) EXPECT_EQ(error_with(family, {}), "") << family;
}

TEST(ModelConfig, UnknownArchitectureListsTheKnown) {
  const std::string message = error_with("qwen3", {.metadata = [](GgufMetadata& m) {
                                           m.set("general.architecture", GgufValue::string("gpt9"));
                                         }});
  EXPECT_EQ(message,
            "general.architecture: 'gpt9' is not supported (known: llama, qwen2, qwen3, qwen3moe, qwen3next, "
            "qwen35moe, "
            "qwen4exp)");
}

TEST(ModelConfig, ValuesOutOfRangeNameTheKey) {
  const auto with = [](const char* key, GgufValue value) {
    return error_with("qwen4exp", {.metadata = [&](GgufMetadata& m) { m.set(key, value); }});
  };
  EXPECT_EQ(with("qwen4exp.attention.head_count_kv", GgufValue::u32(3)),
            "qwen4exp.attention.head_count_kv: 3 does not divide the 4 query heads");
  EXPECT_EQ(with("qwen4exp.block_count", GgufValue::u32(0)), "qwen4exp.block_count: 0, expected 1 to 4096");
  EXPECT_EQ(with("qwen4exp.expert_used_count", GgufValue::u32(17)),
            "qwen4exp.expert_used_count: 17, expected 1 to 16");
  EXPECT_EQ(with("qwen4exp.ple.layers", GgufValue::u32_array({1, 2})),
            "qwen4exp.ple.layers: [1, 2], expected one block below 8");
  EXPECT_EQ(with("qwen4exp.ple.layer_multipliers", GgufValue::u64_array({1})),
            "qwen4exp.ple.layer_multipliers: 1 entries, expected 3");
  EXPECT_EQ(with("qwen4exp.rope.scaling.type", GgufValue::string("yarn")),
            "qwen4exp.rope.scaling.type: yarn, only unscaled rope is supported");
  EXPECT_EQ(with("qwen4exp.ssm.time_step_rank", GgufValue::u32(5)),
            "qwen4exp.ssm.time_step_rank: 5 is not a multiple of group_count 2");
}

TEST(ModelConfig, IntegerWidthsAndScalarsForArraysAreAccepted) {
  EXPECT_EQ(error_with("qwen4exp", {.metadata =
                                        [](GgufMetadata& m) {
                                          m.set("qwen4exp.expert_count", GgufValue::i32(16));
                                          m.set("qwen4exp.embedding_length", GgufValue::u64(64));
                                          m.set("qwen4exp.attention.compress_ratios", GgufValue::u32(4));
                                          m.set("qwen4exp.expert_feed_forward_length",
                                                GgufValue::u32_array({32, 32, 32, 32, 32, 32, 32, 32}));
                                        }}),
            "");
}

TEST(ModelConfig, EveryMissingTensorIsNamed) {
  for (const std::string& family : testing::kFamilies) {
    const auto storage = make_posix_storage();
    const GgufFile source = GgufFile::open(*storage, testing::converted_vectors(family)).value();
    int step = 0;
    for (const TensorInfo& tensor : source.tensors()) {
      if (tensor.name == "output.weight") continue;  // falls back to the embedding
      if (++step % 5 != 0 && tensor.name != "token_embd.weight") continue;
      EXPECT_EQ(error_with(family, {.drop = tensor.name}), tensor.name + ": missing tensor") << family;
    }
  }
}

TEST(ModelConfig, WrongShapesNameSeenAndWanted) {
  EXPECT_EQ(error_with("qwen3", {.reshape = "blk.0.attn_q.weight"}),
            "blk.0.attn_q.weight: shape [64, 127], expected [64, 128]");
  EXPECT_EQ(error_with("qwen4exp", {.reshape = "blk.2.ffn_up_exps.weight"}),
            "blk.2.ffn_up_exps.weight: shape [64, 32, 15], expected [64, 32, 16]");
}

TEST(ModelConfig, NanInSmallTensorsIsFoundAtLoad) {
  EXPECT_EQ(error_with("qwen3", {.poison = "blk.1.attn_norm.weight"}),
            "blk.1.attn_norm.weight: element 0 is nan, expected finite weights");
  EXPECT_EQ(error_with("qwen3moe", {.poison = "blk.1.ffn_gate_inp.weight"}),
            "blk.1.ffn_gate_inp.weight: element 0 is nan, expected finite weights");
}

TEST(ModelConfig, NanInLargeTensorsIsNamedByTheForwardPass) {
  const TemporaryDirectory folder;
  testing::LoadedModel m(altered(folder, "qwen3moe", {.poison = "blk.1.attn_q.weight"}));
  SequenceState state = m.state(16);
  const std::vector<int32_t> ids{1, 2, 3};
  const Span span{&state, ids, LogitRows::kLast};
  const Result<ForwardOutput> out = m.model->forward({&span, 1});
  ASSERT_FALSE(out.has_value());
  EXPECT_EQ(out.error().message,
            "blk.1.attn_q.weight: weights that are not finite (the logits are not either)");
  EXPECT_EQ(state.n_cells(), 0);
}

TEST(ModelConfig, ADraftHeadThatIsAnnouncedButAbsentIsRefused) {
  const Change change{.metadata = [](GgufMetadata& m) {
    m.set("qwen4exp.block_count", GgufValue::u32(9));
    m.set("qwen4exp.nextn_predict_layers", GgufValue::u32(1));
  }};
  EXPECT_EQ(error_with("qwen4exp", change), "blk.8.nextn.enorm.weight: missing tensor");
  // Without the head nobody misses it.
  const TemporaryDirectory folder;
  EXPECT_EQ(load_error(altered(folder, "qwen4exp", change), {.mtp = false}), "");
}

TEST(ModelMemory, TheBudgetRefusesBeforeAllocating) {
  const auto storage = make_posix_storage();
  const GgufFile file = GgufFile::open(*storage, testing::converted_vectors("qwen4exp")).value();
  ThreadPool pool(1);
  KernelContext kernels(pool, best_isa());
  MemoryBudget small(100'000);
  const Result<Model> model = Model::load(*storage, file, nullptr, {}, kernels, small);
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, Code::kOutOfMemory);
  EXPECT_EQ(small.used_bytes(), 0u);
}

TEST(StateSize, CountsWhatCreateReserves) {
  testing::LoadedModel m(testing::converted_vectors("qwen4exp"));
  for (KvType kv : {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8}) {
    const StateSize size = state_size(m.model->config(), false, kv);
    EXPECT_EQ(1024 * size.bytes_per_cell, state_row_bytes(m.model->config(), 1024, false, kv));
    for (int64_t context : {1, 7, 1024}) {
      const uint64_t before = m.budget.used_bytes();
      const SequenceState state =
          SequenceState::create(m.model->config(), context, false, kv, m.budget).value();
      EXPECT_EQ(m.budget.used_bytes() - before,
                size.fixed_bytes + state_row_bytes(m.model->config(), context, false, kv));
    }
  }
}

}  // namespace
}  // namespace forebay
