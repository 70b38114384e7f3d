// train grpo as several programs: who dies is named at once, and the run goes on from its last checkpoint.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/child_process.h"
#include "core/free_port.h"
#include "core/storage.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

const std::vector<std::string> kTiny = {"model.hidden=32",    "model.blocks=4",
                                        "model.heads=2",      "model.kv_heads=1",
                                        "model.head_dim=16",  "model.ffn=32",
                                        "sft.steps=2",        "sft.batch=16",
                                        "grpo.prompts=6",     "grpo.answers=4",
                                        "validation.every=0", "sampler.context=16",
                                        "sampler.threads=1",  "run.checkpoint_every=2",
                                        "run.threads=1",      "pipeline.micro_batch=10",
                                        "wire.codec=none",    "cvc.mode=ce",
                                        "cvc.lambda=0.5",     "grpo.drop_equal=false",
                                        "timeouts.pg_s=5",    "timeouts.step_s=20",
                                        "timeouts.init_s=30", "timeouts.silence_s=4"};

class GrpoProcesses : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(folder_ / "empty.toml") << "\n"; }

  Path out() const { return folder_ / "run"; }

  void start(int size, const std::vector<std::string>& more, bool resume = false) {
    const std::string port = std::to_string(free_port().value());
    children_.clear();
    for (int rank = 0; rank < size; ++rank) {
      ChildOptions options;
      options.arguments = {FOREBAY_TRAIN_PROGRAM, "grpo", "--recipe", folder_ / "empty.toml", "--out", out()};
      if (resume) options.arguments.emplace_back("--resume");
      for (const auto* settings : {&kTiny, &more})
        for (const std::string& setting : *settings)
          options.arguments.insert(options.arguments.end(), {"--set", setting});
      options.environment = {{"RANK", std::to_string(rank)},
                             {"WORLD_SIZE", std::to_string(size)},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", port}};
      options.captured = true;
      children_.push_back(ChildProcess::start(options).value());
    }
  }
  int64_t last_step() const {
    std::ifstream log(out() / "metrics.jsonl");
    int64_t last = -1;
    for (std::string line; std::getline(log, line);) {
      const auto row = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (row.is_object() && row.contains("step")) last = row["step"].get<int64_t>();
    }
    return last;
  }
  /// Whether the run gets there; what its processes said if not.
  ::testing::AssertionResult comes_to_step(int64_t step) {
    const auto ended = [](ChildProcess& child) { return child.finished().has_value(); };
    for (const Clock::time_point start = Clock::now(); Clock::now() - start < std::chrono::seconds(60);) {
      if (last_step() >= step) return ::testing::AssertionSuccess();
      if (std::any_of(children_.begin(), children_.end(), ended)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (ChildProcess& child : children_) child.signal(SIGKILL);
    ::testing::AssertionResult result = ::testing::AssertionFailure() << "at step " << last_step();
    for (const Ended& end : wait_for_all(std::chrono::seconds(10))) result << "\n" << end.said;
    return result;
  }
  struct Ended {
    int code = -1;
    std::string said;
  };
  std::vector<Ended> wait_for_all(std::chrono::seconds patience) {
    std::vector<Ended> ended(children_.size());
    const Clock::time_point start = Clock::now();
    for (size_t n_left = ended.size(); n_left > 0 && Clock::now() - start < patience;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      n_left = 0;
      for (size_t rank = 0; rank < ended.size(); ++rank) {
        char buffer[4096];
        for (const int end : {children_[rank].output(), children_[rank].errors()})
          for (ssize_t n; (n = ::read(end, buffer, sizeof(buffer))) > 0;)
            ended[rank].said.append(buffer, static_cast<size_t>(n));
        if (ended[rank].code < 0) ended[rank].code = children_[rank].finished().value_or(-1);
        n_left += ended[rank].code < 0 ? 1 : 0;
      }
    }
    return ended;
  }

  const TemporaryDirectory folder_;
  std::vector<ChildProcess> children_;
};

TEST_F(GrpoProcesses, AStageThatDiesIsNamedAtOnceAndTheRunGoesOn) {
  // Without a codec the same run may go on in fewer processes.
  struct Death {
    int size;
    size_t rank;
  };
  for (const Death& death : {Death{3, 1}, Death{2, 0}}) {
    start(death.size, {"run.steps=100000"}, /*resume=*/death.size < 3);
    ASSERT_TRUE(comes_to_step(last_step() + 3));
    children_[death.rank].signal(SIGKILL);
    const Clock::time_point start = Clock::now();
    const std::vector<Ended> ended = wait_for_all(std::chrono::seconds(30));
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
    for (size_t rank = 0; rank < ended.size(); ++rank) {
      if (rank == death.rank) continue;
      EXPECT_EQ(ended[rank].code, 1) << ended[rank].said;
      EXPECT_NE(ended[rank].said.find("rank " + std::to_string(death.rank) + " is gone"), std::string::npos)
          << ended[rank].said;
    }
  }
  const int64_t last = last_step();
  this->start(1, {"run.steps=" + std::to_string(last + 2)}, /*resume=*/true);
  for (const Ended& ended : wait_for_all(std::chrono::seconds(60))) EXPECT_EQ(ended.code, 0) << ended.said;
  EXPECT_EQ(last_step(), last + 2);
}

TEST_F(GrpoProcesses, AnyRankCanBeAskedToStop) {
  start(2, {"run.steps=100000", "run.checkpoint_every=100000"});
  ASSERT_TRUE(comes_to_step(3));
  ::kill(children_[1].pid(), SIGTERM);
  for (const Ended& ended : wait_for_all(std::chrono::seconds(30))) EXPECT_EQ(ended.code, 130) << ended.said;
  const int64_t last = last_step();
  start(2, {"run.steps=" + std::to_string(last + 1)}, /*resume=*/true);
  for (const Ended& ended : wait_for_all(std::chrono::seconds(60))) EXPECT_EQ(ended.code, 0) << ended.said;
  std::ifstream log(out() / "metrics.jsonl");
  std::vector<int64_t> steps;
  for (std::string line; std::getline(log, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row.contains("step")) steps.push_back(row["step"]);
  }
  for (size_t i = 0; i < steps.size(); ++i)
    EXPECT_EQ(steps[i], static_cast<int64_t>(i) + 1) << "no step twice";
}

}  // namespace
}  // namespace forebay
