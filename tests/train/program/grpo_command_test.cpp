// train grpo: the recipe that shows that it learns, shortened.
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/child_process.h"
#include "core/storage.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

TEST(GrpoCommand, AModelLearnsToAdd) {
  std::filesystem::current_path(FOREBAY_SOURCE_DIR);
  const TemporaryDirectory folder;
  const std::string out = folder / "toy";
  // A warm start shorter than the recipe's, at twice its learning rate: it leaves GRPO more to do, and takes
  // less time. One thread each: the same numbers on every machine of this kind.
  const Result<Output> ran = output_of({FOREBAY_TRAIN_PROGRAM,
                                        "grpo",
                                        "--recipe",
                                        "recipes/grpo-toy.toml",
                                        "--out",
                                        out,
                                        "--set",
                                        "run.threads=1",
                                        "--set",
                                        "sampler.threads=1",
                                        "--set",
                                        "sft.steps=120",
                                        "--set",
                                        "sft.lr=2e-3",
                                        "--set",
                                        "run.steps=60",
                                        "--set",
                                        "probe.every=0",
                                        "--set",
                                        "validation.every=60",
                                        "--set",
                                        "validation.items=1000"},
                                       std::chrono::minutes(8));
  ASSERT_TRUE(ran) << ran.error().message;
  ASSERT_EQ(ran->code, 0) << ran->err;

  const std::unique_ptr<Storage> storage = make_posix_storage();
  const Result<std::string> record = read_text(*storage, out + "/metrics.jsonl", 16 << 20);
  ASSERT_TRUE(record) << record.error().message;
  std::istringstream lines(*record);
  double before = -1;
  double after = -1;
  int n_steps = 0;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (!row.contains("step")) continue;
    const int step = row.at("step").get<int>();
    if (row.contains("val_accuracy")) (step == 0 ? before : after) = row.at("val_accuracy").get<double>();
    if (!row.contains("reward") || step == 0) continue;
    ++n_steps;
    EXPECT_EQ(row.at("ratio_max_dev").get<double>(), 0.0) << "step " << step;
  }
  EXPECT_EQ(n_steps, 60);
  EXPECT_GT(before, 0.1) << "GRPO starts from a model that knows some answers";
  EXPECT_GE(after, before + 0.10);
  std::printf("greedy answers right: %.3f before, %.3f after 60 steps\n", before, after);
}

}  // namespace
}  // namespace forebay
