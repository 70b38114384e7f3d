// Whole programs with a scripted trainer: order, kills, budget, crashes, going on.
#include "lab/runner.h"

#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay::lab {
namespace {

const std::string kTrainer = FOREBAY_SOURCE_DIR "/tests/lab/fake_trainer.sh";

class LabRun : public testing::Test {
 protected:
  LabProgram program(const std::string& cells, const std::string& more = "") {
    const Path path = folder_ / "p.toml";
    const std::string text = "[program]\ncommand = ['sh', '" + kTrainer +
                             "']\nrecipe = 'r.toml'\nbudget_s = 1000\ncontrol = 'dense'\n" + more + cells;
    const auto file = storage_->create(path).value();
    EXPECT_OK(file->append(std::as_bytes(std::span(text))));
    EXPECT_OK(file->close());
    Result<LabProgram> read = read_program(*storage_, path);
    EXPECT_OK(read);
    return std::move(read).value();
  }
  RunOptions options() {
    RunOptions out;
    out.poll = std::chrono::milliseconds(5);
    out.grace = std::chrono::milliseconds(200);
    out.say = [this](const std::string& line) { said_.push_back(line); };
    return out;
  }
  Result<RunEnd> run(const LabProgram& p) {
    return run_program(*storage_, p, folder_ / "out", options(), {});
  }
  Records records() { return Records::open(*storage_, folder_ / "out" / "records.jsonl").value(); }
  int count(const Records& all, std::string_view kind, std::string_view cell) {
    int n = 0;
    for (const Json& record : all.all()) n += record["kind"] == kind && record.value("cell", "") == cell;
    return n;
  }
  Series series(const std::string& cell) {
    return read_series(*storage_, folder_ / "out" / "cells" / cell / "metrics.jsonl").value();
  }

  TemporaryDirectory folder_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
  std::vector<std::string> said_;
};

constexpr const char* kTwo =
    "[cell.dense]\nrole = 'reference'\n[cell.prf]\nparent = 'dense'\nset = ['wire.codec=prf']\n";

TEST_F(LabRun, RunsEveryCellOnce) {
  const LabProgram p = program(kTwo);
  const Result<RunEnd> end = run(p);
  ASSERT_OK(end);
  EXPECT_EQ(*end, RunEnd::kDone);
  const Records first = records();
  EXPECT_EQ(first.last("ended", "cell", "prf")->at("outcome"), "complete");
  EXPECT_EQ(first.last("ended", "cell", "prf")->at("steps"), 30);
  const Json& registered = *first.last("registered", "cell", "prf");
  EXPECT_EQ(registered["variable"]["key"], "wire.codec");
  EXPECT_EQ(registered["implied"][0]["key"], "wire.k");
  EXPECT_EQ(series("prf").last_step(), 30);
  // Again: nothing is left to do, and nothing is written but that.
  ASSERT_OK(run(p));
  EXPECT_EQ(records().all().size(), first.all().size());
}

TEST_F(LabRun, TwoVariablesStartNothing) {
  const LabProgram p =
      program("[cell.dense]\nset=[]\n[cell.b]\nparent = 'dense'\nset = ['wire.codec=prf', 'fake.gap=2']\n");
  EXPECT_TRUE(fails_with(run(p), Code::kInvalidArgument, "cell b", "2 variables", "fake.gap, wire.codec"));
  EXPECT_TRUE(records().all().empty());
  EXPECT_TRUE(fails_with(run(program("[cell.dense]\nset=['nothing.here=1']\n")), Code::kInvalidArgument,
                         "cell dense: dry run", "nothing asks for nothing.here"));
}

TEST_F(LabRun, KillTriggersCutARunShort) {
  const LabProgram p =
      program(std::string("[cell.dense]\nset=['fake.delay=0.02', 'fake.steps=2000', 'fake.gap=4']\n") +
              "kill = ['gap']\n[cell.rises]\nparent = 'dense'\nset = ['fake.slope=0.1']\n");
  LabProgram only = p;
  only.cells.erase(only.cells.begin());
  only.cells[0].parent = "";
  only.cells[0].settings = {"fake.delay=0.02", "fake.steps=2000", "fake.gap=4", "fake.slope=0.1"};
  only.cells[0].kill = {trigger_named("gap").value()};
  only.control = "";
  ASSERT_OK(run(only));
  const Json ended = *records().last("ended", "cell", "rises");
  EXPECT_EQ(ended["outcome"], "killed");
  EXPECT_EQ(ended["reason"], "gap-high");
  EXPECT_EQ(ended["detail"], "gap 5.1 at step 11, limit 5");
  EXPECT_LT(series("rises").last_step(), 1000);
  // A killed cell is complete.
  ASSERT_OK(run(only));
  EXPECT_EQ(count(records(), "started", "rises"), 1);
}

TEST_F(LabRun, NotFiniteIsSeenEvenAtTheEnd) {
  const LabProgram p = program("[cell.dense]\nset=['fake.nan_at=30', 'fake.steps=30']\n");
  ASSERT_OK(run(p));
  EXPECT_EQ(records().last("ended", "cell", "dense")->at("outcome"), "killed");
  EXPECT_EQ(records().last("ended", "cell", "dense")->at("reason"), "not-finite");
}

TEST_F(LabRun, TheBudgetIsAHardStop) {
  LabProgram p = program(
      "[cell.dense]\nset=['fake.delay=0.05', "
      "'fake.steps=5000']\n[cell.b]\nparent='dense'\nset=['fake.gap=2']\n");
  p.budget_s = 2;
  p.devices = 4;  // half a second on four devices
  const Result<RunEnd> end = run(p);
  ASSERT_OK(end);
  EXPECT_EQ(*end, RunEnd::kBudget);
  EXPECT_EQ(records().last("ended", "cell", "dense")->at("reason"), "budget");
  EXPECT_GE(cost_of(records()), 2);
  EXPECT_LT(cost_of(records()), 2 + 4 * 5);
  EXPECT_EQ(records().last("started", "cell", "b"), nullptr);
  // With no money left nothing starts, however often it is asked.
  EXPECT_EQ(run(p).value(), RunEnd::kBudget);
  EXPECT_EQ(count(records(), "started", "dense"), 1);
  // With more, it goes on where it stopped.
  p.budget_s = 1000;
  p.cells.pop_back();
  p.cells[0].limit_s = cost_of(records()) + 0.4;
  ASSERT_OK(run(p));
  EXPECT_EQ(records().last("started", "cell", "dense")->at("resume"), true);
  EXPECT_EQ(records().last("ended", "cell", "dense")->at("reason"), "time-limit");
}

TEST_F(LabRun, AFailedCellGoesOnWhenRunAgain) {
  const LabProgram p =
      program("[cell.dense]\nset=['fake.fail_at=10']\n[cell.b]\nparent='dense'\nset=['fake.gap=2']\n");
  EXPECT_EQ(run(p).value(), RunEnd::kFailures);
  EXPECT_EQ(records().last("ended", "cell", "dense")->at("exit_code"), 7);
  EXPECT_EQ(series("dense").last_step(), 9);
  EXPECT_EQ(run(p).value(), RunEnd::kDone);
  EXPECT_EQ(series("dense").last_step(), 30);
  EXPECT_EQ(series("dense").rows().size(), 30u);
}

TEST_F(LabRun, KilledOutrightItGoesOn) {
  const LabProgram p =
      program("[cell.dense]\nset=[]\n[cell.slow]\nparent='dense'\nset=['fake.delay=0.03']\n");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)run_program(*storage_, p, folder_ / "out", options(), {});
    ::_exit(0);
  }
  for (int i = 0; i < 2000 && series("slow").last_step() < 3; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  // The trainer dies with it: nothing is written any more.
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  const int64_t reached = series("slow").last_step();
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_EQ(series("slow").last_step(), reached);
  EXPECT_LT(reached, 30);

  ASSERT_OK(run(p));
  const Records all = records();
  EXPECT_EQ(count(all, "started", "dense"), 1);
  EXPECT_EQ(count(all, "started", "slow"), 2);
  EXPECT_EQ(all.last("started", "cell", "slow")->at("resume"), true);
  EXPECT_EQ(series("slow").rows().size(), 30u);
}

TEST_F(LabRun, AStartedCellCannotBecomeAnother) {
  ASSERT_OK(run(program("[cell.dense]\nset=[]\n")));
  EXPECT_TRUE(fails_with(run(program("[cell.dense]\nset=['fake.gap=2']\n")), Code::kInvalidArgument,
                         "cell dense was started as", "another name"));
  // Nor can its bars move.
  EXPECT_TRUE(fails_with(run(program("[cell.dense]\nset=[]\ngates=['gap-flat']\n")), Code::kInvalidArgument,
                         "dense"));
  // Others may come.
  ASSERT_OK(run(program("[cell.dense]\nset=[]\n[cell.more]\nparent='dense'\nset=['fake.gap=2']\n")));
  EXPECT_EQ(count(records(), "started", "dense"), 1);
}

TEST_F(LabRun, VerdictsAreRecordedOnce) {
  const LabProgram p = program(
      "[cell.dense]\nset=['fake.steps=120']\ngates=['study.G1', 'study.G2', 'learns']\n"
      "[cell.rises]\nparent='dense'\nset=['fake.slope=0.01']\ngates=['study.G2']\n");
  ASSERT_OK(run(p));
  ASSERT_OK(run(p));
  const Records all = records();
  EXPECT_EQ(count(all, "verdict", "dense"), 3);
  EXPECT_EQ(count(all, "verdict", "rises"), 1);
  for (const Json& record : all.all()) {
    if (record["kind"] != "verdict") continue;
    const std::string wanted = record["cell"] == "rises" || record["gate"] == "learns" ? "fail" : "pass";
    EXPECT_EQ(record["outcome"], wanted) << record.dump();
  }
}

TEST_F(LabRun, OneAtATime) {
  const LabProgram p = program(kTwo);
  ASSERT_OK(storage_->make_directory(folder_ / "out"));
  const auto lock = storage_->lock(folder_ / "out" / "lock", false).value();
  EXPECT_TRUE(fails_with(run(p), Code::kInvalidArgument, "another lab run"));
}

}  // namespace
}  // namespace forebay::lab
