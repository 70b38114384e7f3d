// Whole runs of a very small model: what resumes is what never stopped, what measures changes nothing, and
// what is refused.
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/temporary_directory.h"
#include "train/grpo/run_file.h"
#include "train/grpo/trainer.h"
#include "train/nets/files.h"

namespace forebay::train {
namespace {

using Json = nlohmann::json;

const std::vector<std::string> kTiny = {"model.hidden=32",
                                        "model.blocks=4",
                                        "model.heads=2",
                                        "model.kv_heads=1",
                                        "model.head_dim=16",
                                        "model.ffn=32",
                                        "sft.steps=2",
                                        "sft.batch=16",
                                        "grpo.prompts=6",
                                        "grpo.answers=4",
                                        "grpo.lr=1e-2",
                                        "grpo.warmup=0",
                                        "grpo.drop_equal=false",
                                        "validation.every=0",
                                        "probe.every=2",
                                        "sampler.context=16",
                                        "sampler.threads=1",
                                        "run.steps=4",
                                        "run.checkpoint_every=2",
                                        "run.threads=1",
                                        "pipeline.micro_batch=10",
                                        "grpo.beta=0.05",
                                        "cvc.mode=ce",
                                        "cvc.lambda=0.5"};

std::vector<std::string> with(std::vector<std::string> settings) {
  std::vector<std::string> all = kTiny;
  all.insert(all.end(), settings.begin(), settings.end());
  return all;
}

class Runs : public ::testing::Test {
 protected:
  Path directory(const std::string& name) const { return temp_ / name; }

  Result<std::unique_ptr<GrpoRun>> open(const std::string& name, const std::vector<std::string>& settings,
                                        bool resume = false) {
    Recipe recipe = TRY(Recipe::parse("", "test", settings));
    return GrpoRun::open(*storage_, std::move(recipe), directory(name), resume, {}, {});
  }
  /// Hash of the policy at the end.
  uint64_t run(const std::string& name, const std::vector<std::string>& settings, bool resume = false) {
    auto opened = open(name, settings, resume);
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      return 0;
    }
    const Result<void> done = (*opened)->run({});
    EXPECT_TRUE(done) << done.error().message;
    return tensors_hash(named_tensors((*opened)->policy()));
  }
  /// Rows by step, the later of two; without times.
  std::map<int64_t, Json> rows(const std::string& name, const std::vector<std::string>& without = {}) {
    std::map<int64_t, Json> result;
    std::istringstream text(read_text(*storage_, directory(name) / "metrics.jsonl").value());
    for (std::string line; std::getline(text, line);) {
      Json row = Json::parse(line);
      if (!row.contains("step")) continue;
      const int64_t step = row["step"];
      for (const char* time : {"step_s", "draw_s", "refresh_s"}) row.erase(time);
      for (const std::string& key : without) row.erase(key);
      result[step] = row;
    }
    return result;
  }

  TemporaryDirectory temp_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
};

/// "cvc" gives every step something to learn: so small a model has no right answer to be rewarded for.
struct Arm {
  std::string name;
  std::vector<std::string> settings;
  double bits_fwd, bits_bwd;
};
const std::vector<Arm> kArms = {
    {"none", {}, 0, 0},
    {"dense", {"wire.codec=dense"}, 32 * 16, 32 * 16},
    {"prf", {"wire.codec=prf", "wire.k=16"}, 16 * 16, 16 * 16},
    {"sr4", {"wire.codec=sr", "wire.bits=4"}, 32 * 4.5, 32 * 4.5},
    {"rn4", {"wire.codec=rn", "wire.bits=4"}, 32 * 4.5, 32 * 4.5},
    {"frlr",
     {"wire.codec=frlr", "wire.rank=8", "wire.k_residual=4", "wire.refresh_every=2"},
     13 * 16,
     12 * 16},
    {"powersgd", {"wire.codec=powersgd", "wire.rank=8", "wire.refresh_every=2"}, 8 * 16, 8 * 16},
    {"controlled",
     {"controller.enabled=true", "controller.table=[0, 0.01]", "brake.enabled=true", "brake.floor=0"},
     0,
     0},
};
class EveryArm : public Runs, public ::testing::WithParamInterface<Arm> {
 protected:
  std::vector<std::string> settings(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = GetParam().settings;
    if (GetParam().name != "none" && GetParam().name != "controlled") all.push_back("pipeline.stages=3");
    all.insert(all.end(), more.begin(), more.end());
    return with(all);
  }
};
void PrintTo(const Arm& arm, std::ostream* out) {
  *out << arm.name;
}
INSTANTIATE_TEST_SUITE_P(Arms, EveryArm, ::testing::ValuesIn(kArms),
                         [](const auto& info) { return info.param.name; });

TEST_P(EveryArm, TwiceKIsKThenResumeThenK) {
  const uint64_t whole = run("whole", settings());
  EXPECT_NE(run("parts", settings({"run.steps=2"})), whole);
  EXPECT_EQ(run("parts", settings(), /*resume=*/true), whole);
  EXPECT_EQ(rows("whole"), rows("parts"));
  const RunFile a = read_run_file(*storage_, run_file_path(directory("whole"), 4)).value();
  const RunFile b = read_run_file(*storage_, run_file_path(directory("parts"), 4)).value();
  EXPECT_EQ(a.facts.at("hash"), b.facts.at("hash")) << "optimiser, reference and codec too";
  EXPECT_EQ(a.facts.at("beta"), b.facts.at("beta"));
  EXPECT_EQ(a.facts.at("brake"), b.facts.at("brake"));
  EXPECT_EQ(a.facts.at("reference_hash"), b.facts.at("reference_hash"));
}

TEST_P(EveryArm, TheProbeTouchesNothing) {
  if (GetParam().name == "controlled") GTEST_SKIP() << "what acts on the probe changes with it";
  const uint64_t with_probe = run("probed", settings({"probe.every=1", "run.steps=3"}));
  EXPECT_EQ(run("plain", settings({"probe.every=0", "run.steps=3"})), with_probe);
  EXPECT_EQ(rows("probed", {"kl_dense", "gap_codec", "gap_engine", "engine_max_diff", "inflation"}),
            rows("plain"));
}

TEST_P(EveryArm, ItsNumbersHoldTogether) {
  run("run", settings({"probe.every=1"}));
  const auto all = rows("run");
  ASSERT_EQ(all.size(), 4u);
  for (const auto& [step, row] : all) {
    EXPECT_EQ(row["ratio_max_dev"], 0) << row;
    EXPECT_EQ(row["clip_fraction"], 0) << row;
    EXPECT_EQ(row["skipped"], 0) << row;
    EXPECT_NEAR(row["gap"].get<double>(), row["gap_codec"].get<double>() + row["gap_engine"].get<double>(),
                1e-6);
    EXPECT_LT(row["engine_max_diff"].get<double>(), 2e-5) << row;
    EXPECT_DOUBLE_EQ(row["wire_bits_fwd"].get<double>(), GetParam().bits_fwd);
    EXPECT_DOUBLE_EQ(row["wire_bits_bwd"].get<double>(), GetParam().bits_bwd);
    if (GetParam().bits_fwd == 0) {
      EXPECT_EQ(row["gap_codec"], 0);
      EXPECT_EQ(row["kl_view"], row["kl_dense"]);
    } else {
      EXPECT_NE(row["gap_codec"], 0);
    }
  }
  // The policy is the reference still, and both are seen with the same noise.
  EXPECT_EQ(all.at(1)["kl_view"], 0) << all.at(1);
  EXPECT_EQ(all.at(1)["kl_dense"], 0);
  EXPECT_GT(all.at(4)["kl_dense"].get<double>(), 0);
}

TEST_F(Runs, UnsharedNoiseBreaksTheRatio) {
  // The negative control: every pass with noise of its own.
  run("run", with({"wire.codec=sr", "wire.bits=2", "wire.share=false", "pipeline.stages=3", "run.steps=1"}));
  EXPECT_GT(rows("run").at(1)["ratio_max_dev"].get<double>(), 0.01);
  EXPECT_GT(rows("run").at(1)["kl_view"].get<double>(), 0.001);
}

TEST_F(Runs, WithoutLearningTheGapIsConstantToTheBit) {
  run("run", with({"grpo.lr=0", "task.repeat_first=true", "run.steps=12", "probe.every=1"}));
  const auto all = rows("run", {"step", "lr"});
  ASSERT_EQ(all.size(), 12u);
  for (const auto& [step, row] : all) EXPECT_EQ(row, all.at(1)) << step;
}

TEST_F(Runs, EndsWhereItShouldAndRecordsEachStepOnce) {
  run("run", with({"run.steps=3", "validation.every=2", "validation.items=50"}));
  const auto all = rows("run");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_TRUE(all.at(0).contains("val_accuracy"));
  EXPECT_TRUE(all.at(2).contains("val_accuracy"));
  EXPECT_TRUE(all.at(3).contains("val_accuracy")) << "the last step is always measured";
  for (const int64_t step : {0, 2, 3})
    EXPECT_TRUE(storage_->exists(run_file_path(directory("run"), step))) << step;
  EXPECT_TRUE(storage_->exists(directory("run") / "model.gguf"));
  // Going on with nothing left to do ends well, too.
  run("run", with({"run.steps=3", "validation.every=2", "validation.items=50"}), /*resume=*/true);
  EXPECT_EQ(rows("run"), all);
}

TEST_F(Runs, OtherDataOrOtherRulesAreAnotherRun) {
  run("run", with({"run.steps=2"}));
  const auto message = [&](const std::vector<std::string>& settings) {
    const auto opened = open("run", with(settings), /*resume=*/true);
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_NE(message({"task.seed=2"}).find("task.seed is 2"), std::string::npos) << message({"task.seed=2"});
  EXPECT_NE(message({"task.name=lists"}).find("task.name"), std::string::npos);
  EXPECT_NE(message({"grpo.lr=1e-3"}).find("grpo.lr"), std::string::npos);
  EXPECT_NE(message({"run.seed=7"}).find("run.seed"), std::string::npos);
  EXPECT_EQ(message({"run.steps=3", "probe.every=1"}), "");
  const auto again = open("run", with({}));
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("has a run already"), std::string::npos);
  const auto nothing = open("empty", with({}), /*resume=*/true);
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("no checkpoint"), std::string::npos);
}

TEST_F(Runs, ADamagedCheckpointIsRefused) {
  run("run", with({"run.steps=2"}));
  const Path path = run_file_path(directory("run"), 2);
  std::vector<std::byte> bytes = read_file(*storage_, path).value();
  bytes[bytes.size() / 2] ^= std::byte{1};
  auto file = storage_->create(path).value();
  ASSERT_TRUE(file->append(bytes) && file->close());
  const auto opened = open("run", with({}), /*resume=*/true);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("damaged"), std::string::npos) << opened.error().message;
}

TEST_F(Runs, SettingsThatDoNotGoTogetherAreRefused) {
  const auto message = [&](const std::vector<std::string>& settings) {
    const auto opened = open("never", with(settings));
    return opened ? std::string("opened") : opened.error().message;
  };
  EXPECT_NE(message({"controller.enabled=true"}).find("setpoint comes from a control"), std::string::npos);
  EXPECT_NE(message({"controller.enabled=true", "controller.table=[0, 0]"}).find("more than 0"),
            std::string::npos);
  EXPECT_NE(message({"wire.codec=prf"}).find("stages"), std::string::npos);
  EXPECT_NE(message({"wire.codek=prf"}).find("wire.codec"), std::string::npos) << "the nearest key";
  EXPECT_NE(message({"task.name=chat-tools"}).find("model.path"), std::string::npos);
  EXPECT_NE(message({"pipeline.stages=9", "wire.codec=prf"}).find("9"), std::string::npos);
}

TEST_F(Runs, TheControllersBetaReachesTheLoss) {
  run("run", with({"controller.enabled=true", "controller.table=[0, 1e-9]", "controller.eta=1000",
                   "probe.every=1", "controller.beta_max=0.1", "grpo.beta=0.001"}));
  const auto all = rows("run");
  EXPECT_DOUBLE_EQ(all.at(2)["beta"].get<double>(), 0.1) << "at its bound once the policy has moved";
  EXPECT_LT(all.at(1)["beta"].get<double>(), 0.002);
}

}  // namespace
}  // namespace forebay::train
