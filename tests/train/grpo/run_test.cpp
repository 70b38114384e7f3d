// Whole runs of a very small model: what resumes is what never stopped, what measures changes nothing, and
// what is refused.
#include "grpo_runs.h"

namespace forebay::train {
namespace {

struct Arm {
  std::string name;
  std::vector<std::string> settings;
  double bits_fwd, bits_bwd;
  bool shares_noise = true;
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
    {"prf_sr", {"wire.codec=prf-sr", "wire.k=16", "wire.bits=4"}, 16 * 4.5, 16 * 4.5},
    {"frlr_unbiased",
     {"wire.codec=frlr-unbiased", "wire.rank=8", "wire.k_residual=4", "wire.refresh_every=2"},
     12 * 16,
     12 * 16},
    {"sr4_unshared",
     {"wire.codec=sr", "wire.bits=4", "wire.share=false"},
     32 * 4.5,
     32 * 4.5,
     /*shares_noise=*/false},
    {"anchored_weighed",
     {"wire.codec=prf", "wire.k=16", "anchor.every=2", "importance.weigh=true", "importance.normalise=true",
      "cvc.mode=dc"},
     16 * 16,
     16 * 16},
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
  const auto hash = [&](const char* name) {
    return read_run_file(*storage_, run_file_path(directory(name), 3))->facts.at("hash");
  };
  EXPECT_EQ(hash("probed"), hash("plain")) << "optimiser, averages, bases and counts of passes too";
}

TEST_P(EveryArm, ItsNumbersHoldTogether) {
  run("run", settings({"probe.every=1"}));
  const auto all = rows("run");
  ASSERT_EQ(all.size(), 4u);
  for (const auto& [step, row] : all) {
    EXPECT_EQ(row["ratio_max_dev"] == 0, GetParam().shares_noise) << row;
    if (GetParam().shares_noise) {
      EXPECT_EQ(row["clip_fraction"], 0) << row;
    }
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
  EXPECT_EQ(all.at(1)["kl_view"] == 0, GetParam().shares_noise) << all.at(1);
  EXPECT_EQ(all.at(1)["kl_dense"], 0);
  EXPECT_GT(all.at(4)["kl_dense"].get<double>(), 0);
}

TEST_F(Runs, TheRatioIsOneHoweverTheBatchIsCut) {
  for (const char* n : {"1", "2", "5", "23", "24"}) {
    run(n, with({std::string("pipeline.micro_batch=") + n, "run.steps=1", "pipeline.stages=2",
                 "wire.codec=sr"}));
    EXPECT_EQ(rows(n).at(1)["ratio_max_dev"], 0) << n << " of 24 at a time";
    EXPECT_EQ(rows(n).at(1)["kl_view"], 0) << n;
  }
}

TEST_F(Runs, UnsharedNoiseBreaksTheRatio) {
  // The negative control: every pass with noise of its own.
  run("run", with({"wire.codec=sr", "wire.bits=2", "wire.share=false", "pipeline.stages=3", "run.steps=1"}));
  EXPECT_GT(rows("run").at(1)["ratio_max_dev"].get<double>(), 0.01);
  EXPECT_GT(rows("run").at(1)["kl_view"].get<double>(), 0.001);
}

TEST_F(Runs, WithoutLearningTheGapIsConstantToTheBit) {
  // A stale cache, a sampler that drifts from the trainer, a state that grows: each shows here.
  run("run", with({"grpo.lr=0", "task.repeat_first=true", "run.steps=200", "probe.every=1",
                   "run.checkpoint_every=100", "grpo.prompts=2", "model.blocks=1"}));
  const auto all = rows("run", {"step", "lr"});
  ASSERT_EQ(all.size(), 200u);
  for (const auto& [step, row] : all) ASSERT_EQ(row, all.at(1)) << step;
}

TEST_F(Runs, WithoutLearningNothingDriftsThroughACodec) {
  // Masks change with the step and bases with their rows; what is dense, and what compares two passes over
  // the same rows, does not.
  for (const std::vector<std::string>& codec :
       {std::vector<std::string>{"wire.codec=prf", "wire.k=16"},
        std::vector<std::string>{"wire.codec=frlr", "wire.rank=8", "wire.k_residual=4",
                                 "wire.refresh_every=3"}}) {
    std::vector<std::string> settings = {
        "grpo.lr=0",      "task.repeat_first=true",    "run.steps=40", "probe.every=1", "pipeline.stages=3",
        "grpo.prompts=3", "sampler.weights=bf16-delta"};
    settings.insert(settings.end(), codec.begin(), codec.end());
    run(codec[0], with(settings));
    const auto all = rows(codec[0]);
    ASSERT_EQ(all.size(), 40u);
    for (const auto& [step, row] : all) {
      EXPECT_EQ(row["kl_view"], 0) << row;
      EXPECT_EQ(row["kl_dense"], 0) << row;
      EXPECT_EQ(row["ratio_max_dev"], 0) << row;
      EXPECT_EQ(row["gap_engine"], all.at(1)["gap_engine"]) << step;
      EXPECT_EQ(row["reward"], all.at(1)["reward"]) << step;
    }
  }
}

TEST_F(Runs, ABasisThatChangesBeforeItsStepEndsBreaksTheRatio) {
  // The negative control of staged publishing: two updates share their old log-probs, the basis changes
  // between them, and with a learning rate of 0 nothing else does.
  const std::vector<std::string> two_ticks = {
      "wire.codec=frlr",   "wire.rank=8", "wire.k_residual=4", "wire.refresh_every=2",
      "pipeline.stages=3", "grpo.lr=0",   "grpo.ticks=2",      "run.steps=4"};
  std::vector<std::string> at_once = two_ticks;
  at_once.emplace_back("wire.publish=at-once");
  run("staged", with(two_ticks));
  run("at-once", with(at_once));
  for (const int64_t step : {1, 2, 3, 4}) {
    EXPECT_EQ(rows("staged").at(step)["ratio_max_dev"], 0) << step;
    const double deviation = rows("at-once").at(step)["ratio_max_dev"];
    if (step % 2 == 0) {
      EXPECT_GT(deviation, 0.01) << "a step in which a basis changed";
    } else {
      EXPECT_EQ(deviation, 0) << "a step in which none did";
    }
  }
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

TEST_F(Runs, OnlyWhatChangesResultsIsAnotherRun) {
  run("run", with({"run.steps=2"}));
  const auto message = [&](const std::vector<std::string>& settings) {
    const auto opened = open("run", with(settings), /*resume=*/true);
    return opened ? std::string() : opened.error().message;
  };
  const std::string data = message({"task.seed=2"});
  EXPECT_NE(data.find("task.seed is 2"), std::string::npos) << data;
  EXPECT_NE(data.find("began with 1"), std::string::npos) << data;
  for (const char* setting : {"task.name=lists", "grpo.lr=1e-3", "run.seed=7", "anchor.every=3",
                              "pipeline.micro_batch=5", "sampler.weights=bf16-delta", "grpo.beta=0.1"}) {
    const std::string key = std::string(setting).substr(0, std::string(setting).find('='));
    EXPECT_NE(message({setting}).find(key + " is "), std::string::npos) << message({setting});
  }
  // How long, how fast, how often; and what has nothing to act on.
  for (const char* setting :
       {"run.steps=3", "probe.every=1", "sampler.sequences=8", "validation.items=5", "ledger.every=1",
        "link.latency_s=0.1", "timeouts.step_s=700", "pipeline.backend=gloo", "pipeline.stages=2",
        "wire.bits=2", "wire.refresh_every=7", "anchor.mu=0.5", "controller.eta=2", "brake.factor=0.25",
        "cvc.delta=2"})
    EXPECT_EQ(message({setting}), "") << setting;
  const auto again = open("run", with({}));
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("has a run already"), std::string::npos);
  const auto nothing = open("empty", with({}), /*resume=*/true);
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("no checkpoint"), std::string::npos);
}

TEST_F(Runs, TheProbeIsFreeUnlessSomethingActsOnIt) {
  const std::vector<std::string> controlled = {"controller.enabled=true", "controller.table=[0, 0.01]",
                                               "run.steps=2"};
  run("run", with(controlled));
  std::vector<std::string> settings = controlled;
  settings.emplace_back("probe.every=1");
  const auto opened = open("run", with(settings), /*resume=*/true);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("probe.every is 1"), std::string::npos) << opened.error().message;
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
  EXPECT_EQ(message({"run.device=gpu"}), "run.device is 'gpu': wanted cpu, cuda or cuda:N");
  EXPECT_NE(message({"task.name=chat-tools", "model.path=nowhere.gguf"}).find("no such file"),
            std::string::npos);
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
