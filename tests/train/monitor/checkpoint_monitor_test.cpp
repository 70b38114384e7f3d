// Whole checkpoints: which tensors, which layers, what is refused.
#include "train/monitor/checkpoint_monitor.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "safetensors/safetensors.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"

namespace forebay::train {
namespace {

void write(MemoryStorage& storage, const Path& path, const std::vector<torch::Tensor>& tensors,
           const std::vector<std::string>& names) {
  std::vector<SafeTensorData> data;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<uint64_t> shape(tensors[i].sizes().begin(), tensors[i].sizes().end());
    data.push_back({names[i],
                    tensors[i].scalar_type() == torch::kBFloat16 ? SafeType::kBF16 : SafeType::kF32,
                    shape,
                    {static_cast<const std::byte*>(tensors[i].data_ptr()), tensors[i].nbytes()}});
  }
  ASSERT_OK(write_safetensors(storage, path, data));
}

TEST(CheckpointMonitor, LayersByTheirNames) {
  EXPECT_EQ(layer_of("model.layers.3.mlp.up_proj.weight"), 3);
  EXPECT_EQ(layer_of("layers.12.x"), 12);
  EXPECT_EQ(layer_of("blk.0.ffn_up.weight"), 0);
  EXPECT_EQ(layer_of("model.embed_tokens.weight"), -1);
  EXPECT_EQ(layer_of("model.xlayers.3.w"), -1);
  EXPECT_EQ(layer_of("layers.x.w"), -1);
}

TEST(CheckpointMonitor, MatricesAndLayers) {
  torch::manual_seed(1);
  const std::vector<std::string> names = {"embed.weight", "layers.0.a.weight", "layers.0.norm.weight",
                                          "layers.1.experts.up"};
  std::vector<torch::Tensor> base = {torch::randn({20, 8}), torch::randn({8, 8}).to(torch::kBFloat16),
                                     torch::randn({8}), torch::randn({3, 6, 8})};
  std::vector<torch::Tensor> now = {base[0].clone(), base[1].clone(), base[2] * 2, base[3].clone()};
  now[3][1].mul_(1.25);
  MemoryStorage storage;
  write(storage, "base", base, names);
  write(storage, "now", now, names);
  const Result<CheckpointChange> change = compare_checkpoints(storage, "base", "now", {});
  ASSERT_OK(change);
  ASSERT_EQ(change->matrices.size(), 5u);  // the norm is no matrix, the stack is three
  ASSERT_EQ(change->layers.size(), 3u);
  EXPECT_EQ(change->layers[0].layer, 0);
  EXPECT_EQ(change->layers[0].spectral_shift, 0);
  EXPECT_EQ(change->layers[0].angle, 0);
  EXPECT_EQ(change->layers[2].layer, -1);
  EXPECT_NEAR(change->layers[1].changed_bf16, 1.0 / 3, 0.02);
  EXPECT_NEAR(change->layers[1].spectral_shift, 0.25 / 3, 1e-6);
  const auto json = nlohmann::json::parse(monitor_json(*change));
  for (const auto& matrix : json["matrices"])
    EXPECT_EQ(matrix["identical"], matrix["name"] != "layers.1.experts.up[1]") << matrix["name"];
  EXPECT_NE(monitor_table(*change).find("other"), std::string::npos);
  EXPECT_NE(monitor_script(*change, "x.png").find("\n1 "), std::string::npos);

  write(storage, "other", {torch::randn({20, 9})}, {"embed.weight"});
  EXPECT_TRUE(
      fails_with(compare_checkpoints(storage, "base", "other", {}), Code::kInvalidArgument, "embed.weight"));
  write(storage, "flat", {torch::randn({20})}, {"x"});
  EXPECT_TRUE(
      fails_with(compare_checkpoints(storage, "flat", "flat", {}), Code::kInvalidArgument, "no matrix"));
}

}  // namespace
}  // namespace forebay::train
