// Where a run's model comes from.
#include "train/grpo/policy.h"

#include <gtest/gtest.h>

#include "gguf/gguf.h"
#include "support/temporary_directory.h"
#include "train/grpo/sampler.h"
#include "train/nets/files.h"

namespace forebay::train {
namespace {

class PolicyFrom : public ::testing::Test {
 protected:
  /// A run of `train pretrain` or `sft` that has ended, as far as it matters here.
  void SetUp() override {
    settings_.model.toy = {
        .d_model = 32, .n_blocks = 2, .n_heads = 2, .n_kv_heads = 1, .head_dim = 16, .d_ffn = 48};
    toy_ = make_policy(*storage_, settings_, *task_, 0, 1, torch::kCPU).value();
    const GgufFile words = GgufFile::open(*toy_.words.storage, toy_.words.path).value();
    GgufWriter writer = GgufWriter::create(*storage_, temp_ / "words.gguf").value();
    for (const auto& [key, value] : words.metadata().entries()) writer.set(key, value);
    ASSERT_TRUE(writer.write_headers() && writer.finish());
    ASSERT_TRUE(storage_->make_directory(temp_ / "run"));
    ASSERT_TRUE(save_net(*storage_, temp_ / "run/model", *toy_.net));
    ASSERT_TRUE(write_gguf(*storage_, temp_ / "run/model.gguf", *toy_.net, temp_ / "words.gguf"));
  }
  Result<Policy> from(const std::string& path, const std::string& tokenizer = "") {
    settings_.model.path = path;
    settings_.model.tokenizer = tokenizer;
    return make_policy(*storage_, settings_, *task_, 0, 1, torch::kCPU);
  }
  void expect_the_toy(const Result<Policy>& policy) {
    ASSERT_TRUE(policy) << policy.error().message;
    const NamedTensors was = named_tensors(*toy_.net), is = named_tensors(*policy->net);
    ASSERT_EQ(is.size(), was.size());
    for (const auto& [name, tensor] : was) EXPECT_TRUE(torch::equal(is.at(name), tensor)) << name;
    const Sampler speaks = Sampler::create(*policy->words.storage, policy->words.path, {}).value();
    EXPECT_TRUE(speaks.decode({.tokens = speaks.encode("12"), .log_probs = {}}).ends_with("12"));
  }

  TemporaryDirectory temp_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
  std::unique_ptr<Task> task_ = make_task("add-2d").value();
  GrpoSettings settings_;
  Policy toy_;
};

TEST_F(PolicyFrom, AFileADirectoryOrWhatATrainingLeft) {
  expect_the_toy(from(temp_ / "run/model.gguf"));
  expect_the_toy(from(temp_ / "run"));
  expect_the_toy(from(temp_ / "run/model"));
  ASSERT_TRUE(save_net(*storage_, temp_ / "alone/weights", *toy_.net));
  expect_the_toy(from(temp_ / "alone/weights", temp_ / "words.gguf"));
}

TEST_F(PolicyFrom, WhatIsMissingIsNamed) {
  ASSERT_TRUE(save_net(*storage_, temp_ / "alone/weights", *toy_.net));
  const Result<Policy> silent = from(temp_ / "alone/weights");
  ASSERT_FALSE(silent);
  EXPECT_NE(silent.error().message.find("set model.tokenizer"), std::string::npos) << silent.error().message;
  const Result<Policy> nothing = from(temp_ / "nowhere");
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("nowhere"), std::string::npos) << nothing.error().message;
}

TEST_F(PolicyFrom, EveryStageHasItsPart) {
  settings_.model.path = temp_ / "run";
  const NamedTensors whole = named_tensors(*toy_.net);
  size_t n = 0;
  for (const int64_t stage : {0, 1}) {
    const Policy part = make_policy(*storage_, settings_, *task_, stage, 2, torch::kCPU).value();
    for (const auto& [name, tensor] : named_tensors(*part.net)) {
      EXPECT_TRUE(torch::equal(tensor, whole.at(name))) << name;
      ++n;
    }
  }
  EXPECT_EQ(n, whole.size());
  EXPECT_FALSE(make_policy(*storage_, settings_, *task_, 0, 3, torch::kCPU)) << "two blocks";
}

}  // namespace
}  // namespace forebay::train
