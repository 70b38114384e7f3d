// train pretrain and train sft: the recipes of the repository, shortened.
#include <gtest/gtest.h>

#include "core/child_process.h"
#include "core/storage.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

Output train(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), FOREBAY_TRAIN_PROGRAM);
  Result<Output> ran = output_of(arguments, std::chrono::minutes(5));
  if (!ran) throw std::runtime_error(ran.error().message);
  return *ran;
}

/// Paths in recipes are those of the source tree.
class FitCommandTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::current_path(FOREBAY_SOURCE_DIR); }
  std::vector<std::string> smoke(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"pretrain",
                                       "--recipe",
                                       "recipes/pebble-smoke.toml",
                                       "--out",
                                       folder_ / "run",
                                       "--set",
                                       "fit.row_tokens=24",
                                       "--set",
                                       "fit.batch=2",
                                       "--set",
                                       "fit.steps=4",
                                       "--set",
                                       "model.blocks=4",
                                       "--set",
                                       "fit.validate_every=2",
                                       "--set",
                                       "data.train=[\"README.md\"]"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  const TemporaryDirectory folder_;
};

TEST_F(FitCommandTest, PretrainsStopsAndGoesOn) {
  const Output first = train(smoke({"--stop-after", "2"}));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("2 of 4 steps"), std::string::npos) << first.out;
  const auto recipe = [&] {
    const Result<std::string> text = read_text(*make_posix_storage(), folder_ / "run" / "recipe.toml");
    return text ? *text : text.error().message;
  };
  const std::string resolved = recipe();
  EXPECT_NE(resolved.find("steps = 4"), std::string::npos) << resolved;
  EXPECT_EQ(train(smoke({"--set", "fit.lr=5e-5"})).code, 1) << "the directory holds a run";
  EXPECT_EQ(recipe(), resolved) << "whose recipe stays";
  const Output second = train(smoke({"--resume"}));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.out.find("4 of 4 steps"), std::string::npos) << second.out;
  for (const char* file : {"recipe.toml", "metrics.jsonl", "state.safetensors", "model/config.json",
                           "model/model.safetensors", "model.gguf"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / file)) << file;
}

TEST_F(FitCommandTest, WhatIsWrongIsOneLine) {
  const Output unknown = train(
      {"pretrain", "--recipe", "recipes/pebble-smoke.toml", "--out", folder_ / "run", "--set", "fit.step=3"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("fit.step"), std::string::npos) << unknown.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
  const Output plain = train({"sft", "--recipe", "recipes/pebble-smoke.toml", "--out", folder_ / "run"});
  EXPECT_EQ(plain.code, 1);
  EXPECT_NE(plain.err.find("wanted conversations"), std::string::npos) << plain.err;
}

}  // namespace
}  // namespace forebay
