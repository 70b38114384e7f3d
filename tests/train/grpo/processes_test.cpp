// GRPO across processes: what one process computes, to the bit.
#include <chrono>

#include "grpo_runs.h"

namespace forebay::train {
namespace {

class Processes : public Runs {
 protected:
  /// Everything that the checkpoint of the last step has.
  void expect_same_checkpoints(const std::string& a, const std::string& b) {
    const RunFile one = read_run_file(*storage_, run_file_path(directory(a), 4)).value();
    const RunFile other = read_run_file(*storage_, run_file_path(directory(b), 4)).value();
    EXPECT_EQ(one.facts.at("hash"), other.facts.at("hash"));
    for (const auto& [name, tensor] : one.tensors) {
      ASSERT_TRUE(other.tensors.contains(name)) << name;
      EXPECT_TRUE(torch::equal(tensor, other.tensors.at(name))) << name;
    }
    EXPECT_EQ(one.tensors.size(), other.tensors.size());
  }
};

struct Arm {
  std::string name;
  int n_processes;
  std::vector<std::string> settings;
};
const std::vector<Arm> kArms = {
    {"f32", 2, {}},
    {"gloo", 2, {"pipeline.backend=gloo"}},
    {"sr4", 3, {"wire.codec=sr", "wire.bits=4"}},
    {"frlr_anchor_ledger",
     3,
     {"wire.codec=frlr", "wire.rank=8", "wire.k_residual=4", "wire.refresh_every=2", "anchor.every=3",
      "anchor.masked=true", "ledger.every=1", "probe.every=1", "sampler.weights=bf16-delta"}},
    {"tied", 2, {"model.tied=true", "wire.codec=sr", "wire.bits=4", "grpo.weight_decay=0.1"}},
    {"tied_gloo", 2, {"model.tied=true", "pipeline.backend=gloo"}},
    {"tied_anchor_ledger_stale",
     3,
     {"model.tied=true", "wire.codec=frlr", "wire.rank=8", "wire.k_residual=4", "wire.refresh_every=2",
      "anchor.every=3", "anchor.masked=true", "ledger.every=1", "probe.every=1", "sampler.weights=bf16-delta",
      "sampler.refresh_every=3", "validation.every=2", "validation.items=20"}},
    {"stale", 2, {"sampler.refresh_every=3", "ledger.every=1", "validation.every=2", "validation.items=20"}},
    {"controlled",
     2,
     {"controller.enabled=true", "controller.table=[0, 0.01]", "brake.enabled=true", "brake.floor=0"}},
};
class AcrossProcesses : public Processes, public ::testing::WithParamInterface<Arm> {};
void PrintTo(const Arm& arm, std::ostream* out) {
  *out << arm.name;
}
INSTANTIATE_TEST_SUITE_P(Arms, AcrossProcesses, ::testing::ValuesIn(kArms),
                         [](const auto& info) { return info.param.name; });

TEST_P(AcrossProcesses, TrainsAsOneProcessDoesToTheBit) {
#ifndef FOREBAY_HAS_GLOO
  if (GetParam().name.ends_with("gloo")) GTEST_SKIP() << "a build without Gloo";
#endif
  const int n = GetParam().n_processes;
  std::vector<std::string> settings = GetParam().settings;
  settings.push_back("pipeline.stages=" + std::to_string(n));
  const uint64_t one = run("one", with(settings));
  EXPECT_EQ(run_in(n, "several", with(settings)), one);
  // Signs fill whole bytes, stage by stage.
  EXPECT_EQ(rows("several", {"wire_bytes_slow"}), rows("one", {"wire_bytes_slow"}))
      << "every number of every step";
  for (const auto& [step, row] : rows("one")) {
    if (!row.contains("wire_bytes_slow")) continue;
    const double more =
        rows("several").at(step)["wire_bytes_slow"].get<double>() - row["wire_bytes_slow"].get<double>();
    EXPECT_TRUE(more >= 0 && more < n) << row;
  }
  expect_same_checkpoints("one", "several");
}

TEST_P(AcrossProcesses, TwiceKIsKThenResumeThenK) {
  if (GetParam().name.ends_with("gloo")) GTEST_SKIP() << "as over tcp";
  const int n = GetParam().n_processes;
  std::vector<std::string> settings = GetParam().settings, half = settings;
  half.emplace_back("run.steps=2");
  const uint64_t whole = run_in(n, "whole", with(settings));
  EXPECT_NE(run_in(n, "parts", with(half)), whole);
  EXPECT_EQ(run_in(n, "parts", with(settings), /*resume=*/true), whole);
  EXPECT_EQ(rows("whole"), rows("parts"));
  expect_same_checkpoints("whole", "parts");
}

TEST_F(Processes, OneGoesOnWithWhatTwoBegan) {
  const uint64_t whole = run("whole", with({}));
  run_in(2, "parts", with({"run.steps=2"}));
  EXPECT_EQ(run("parts", with({}), /*resume=*/true), whole);
  expect_same_checkpoints("whole", "parts");
}

TEST_F(Processes, ATiedModelIsTheSameInAnyNumberOfStages) {
  const uint64_t one = run("one", with({"model.tied=true"}));
  EXPECT_EQ(run("virtual", with({"model.tied=true", "pipeline.stages=4"})), one);
  EXPECT_EQ(run_in(4, "four", with({"model.tied=true"})), one);
  expect_same_checkpoints("one", "four");
  // One that two began goes on in four, and in one.
  run_in(2, "parts", with({"model.tied=true", "run.steps=2"}));
  EXPECT_EQ(run_in(4, "parts", with({"model.tied=true", "run.steps=3"}), /*resume=*/true),
            run("three", with({"model.tied=true", "run.steps=3"})));
  EXPECT_EQ(run("parts", with({"model.tied=true"}), /*resume=*/true), one);
  // Two ends that tell each other V x hidden f32 numbers a step.
  for (const auto& [step, row] : rows("four")) {
    const RunFile file = read_run_file(*storage_, run_file_path(directory("four"), 4)).value();
    const torch::Tensor& table = file.tensors.at("policy.model.embed_tokens.weight");
    EXPECT_EQ(row["wire_bytes_tied"], 2 * 4 * table.numel());
    EXPECT_FALSE(file.tensors.contains("policy.lm_head.weight"));
  }
  EXPECT_FALSE(rows("one").at(1).contains("wire_bytes_tied")) << "nothing is sent";
}

TEST_F(Processes, ASlowLinkChangesTimeOnly) {
  const std::vector<std::string> settings = {"pipeline.stages=2", "wire.codec=sr", "run.steps=1",
                                             "run.checkpoint_every=1"};
  std::vector<std::string> slow = settings;
  slow.insert(slow.end(), {"link.latency_s=0.02", "link.bytes_per_second=1e6", "link.jitter_s=0.005",
                           "link.loss=0.05", "link.resend_s=0.01", "anchor_link.latency_s=0.001"});
  const uint64_t fast = run_in(2, "fast", with(settings));
  EXPECT_EQ(run_in(2, "slow", with(slow)), fast);
  EXPECT_EQ(rows("slow"), rows("fast"));
  std::istringstream text(read_text(*storage_, directory("slow") / "metrics.jsonl").value());
  std::string line;
  std::getline(text, line);
  EXPECT_GT(Json::parse(line)["step_s"].get<double>(), 0.08) << "four passes over the link at least";
}

TEST_F(Processes, WhatGoesWrongInOneIsSaidInAll) {
  // Only the leading process looks at the directory.
  run("run", with({"run.steps=1"}));
  const auto start = std::chrono::steady_clock::now();
  for (const Result<uint64_t>& hash : ranks(2, "run", with({"run.steps=1"}))) {
    ASSERT_FALSE(hash);
    EXPECT_NE(hash.error().message.find("rank 0: "), std::string::npos) << hash.error().message;
    EXPECT_NE(hash.error().message.find("has a run already"), std::string::npos) << hash.error().message;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(Processes, StagesThatDoNotFitAreRefused) {
  for (const Result<uint64_t>& hash : ranks(2, "never", with({"pipeline.stages=3"}))) {
    ASSERT_FALSE(hash);
    EXPECT_NE(hash.error().message.find("pipeline.stages is 3 with 2 processes"), std::string::npos)
        << hash.error().message;
  }
  for (const Result<uint64_t>& hash : ranks(2, "never", with({"model.blocks=1"}))) {
    ASSERT_FALSE(hash);
    EXPECT_NE(hash.error().message.find("one block each"), std::string::npos) << hash.error().message;
  }
}

}  // namespace
}  // namespace forebay::train
