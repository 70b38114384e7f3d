// The instruments inside a run: off, they change no bit; on, their numbers hold together.
#include <set>

#include "grpo_runs.h"
#include "train/nets/files.h"

namespace forebay::train {
namespace {

const std::vector<std::string> kFrlr = {"pipeline.stages=3", "wire.codec=frlr",      "wire.rank=8",
                                        "wire.k_residual=4", "wire.refresh_every=2", "probe.every=1"};

std::vector<std::string> plus(std::vector<std::string> settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

using Instruments = Runs;

TEST_F(Instruments, TheLedgersTermsAddUpAndTouchNothing) {
  const uint64_t plain = run("plain", with(kFrlr));
  EXPECT_EQ(run("ledger", with(plus(kFrlr, {"ledger.every=1"}))), plain);
  const auto all = rows("ledger");
  EXPECT_EQ(rows("ledger", keys_with(all.at(2), "ledger_")), rows("plain", {}))
      << "nothing else in the record changes";
  for (const auto& [step, row] : all) {
    const auto term = [&row](const char* name) { return row[std::string("ledger_") + name].get<double>(); };
    EXPECT_EQ(term("sampler"), 0) << "the sampler's weights are the policy's, to the bit";
    EXPECT_EQ(term("stale_weights"), 0);
    // Right after a refresh nothing was harvested yet: no fresher basis, no term.
    const bool has_fresh = row.contains("ledger_stale_basis");
    EXPECT_EQ(has_fresh, step % 2 == 0) << row;
    if (has_fresh) {
      EXPECT_NE(term("stale_basis"), 0);
    }
    EXPECT_NE(term("boundary_1"), 0);
    EXPECT_NE(term("boundary_2"), 0);
    const double sum = term("sampler") + term("engine") + term("boundary_1") + term("boundary_2") +
                       (has_fresh ? term("stale_basis") : 0) + term("stale_weights");
    EXPECT_NEAR(sum, row["gap"].get<double>(), 1e-6);
    EXPECT_NEAR(term("engine"), row["gap_engine"].get<double>(), 1e-9);
    EXPECT_LE(term("residual"), 1e-6);
  }
}

TEST_F(Instruments, TheLedgerTouchesNothingWhereNoiseIsNotShared) {
  const std::vector<std::string> unshared = {"pipeline.stages=3", "wire.codec=sr", "wire.bits=2",
                                             "wire.share=false", "run.steps=3"};
  const uint64_t plain = run("plain", with(unshared));
  EXPECT_EQ(run("ledger", with(plus(unshared, {"ledger.every=1"}))), plain);
  const auto all = rows("ledger");
  EXPECT_EQ(rows("ledger", keys_with(all.at(2), "ledger_")), rows("plain"));
  EXPECT_NE(all.at(1)["ledger_stale_weights"], 0) << "what is left is noise";
}

TEST_F(Instruments, EveryRowSaysWhatItsRunIs) {
  const auto hashes = [&](const char* name) {
    std::set<std::string> found;
    std::istringstream text(read_text(*storage_, directory(name) / "metrics.jsonl").value());
    for (std::string line; std::getline(text, line);)
      if (const Json row = Json::parse(line); row.contains("step")) found.insert(row.at("recipe"));
    return found;
  };
  run("one", with({"run.steps=1"}));
  run("one", with({"run.steps=2", "sampler.threads=2", "wire.bits=3"}), /*resume=*/true);
  run("other", with({"run.steps=1", "grpo.beta=0.06"}));
  run("same", with({"run.steps=1", "pipeline.stages=2"}));
  ASSERT_EQ(hashes("one").size(), 1u) << "it goes on as the same run";
  EXPECT_EQ(hashes("same"), hashes("one")) << "f32 rows are the same however a model is cut";
  EXPECT_NE(hashes("other"), hashes("one"));
}

TEST_F(Instruments, StaleWeightsAreATermOfTheirOwn) {
  const std::vector<std::string> settings = {"sampler.refresh_every=3", "ledger.every=1", "probe.every=1",
                                             "sampler.weights=bf16-delta"};
  const uint64_t whole = run("whole", with(settings));
  const auto all = rows("whole");
  for (const auto& [step, row] : all) {
    const bool is_fresh = step == 1 || step == 4;
    EXPECT_EQ(row["ledger_stale_weights"].get<double>() == 0, is_fresh) << row;
    EXPECT_NE(row["ledger_sampler"], 0) << "bf16 weights: " << row;
    EXPECT_NEAR(row["ledger_sampler"].get<double>() + row["gap"].get<double>(),
                row["ledger_gap"].get<double>(), 1e-6);
  }
  // The weights that the sampler has are part of a checkpoint: here those of two steps ago.
  run("parts", with(plus(settings, {"run.steps=2"})));
  EXPECT_EQ(run("parts", with(settings), /*resume=*/true), whole);
  EXPECT_EQ(rows("parts"), all);
}

TEST_F(Instruments, DeltasSendWhatBf16Sees) {
  run("f32", with({"run.steps=3", "grpo.lr=1e-5", "sft.steps=0"}));
  run("delta", with({"run.steps=3", "grpo.lr=1e-5", "sft.steps=0", "sampler.weights=bf16-delta"}));
  std::vector<nlohmann::json> first, last;
  for (const char* name : {"f32", "delta"}) {
    std::istringstream text(read_text(*storage_, directory(name) / "metrics.jsonl").value());
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    first.push_back(lines.front());
    last.push_back(lines.back());
  }
  const auto whole = open("f32", with({"run.steps=3", "grpo.lr=1e-5", "sft.steps=0"}), /*resume=*/true);
  ASSERT_TRUE(whole) << whole.error().message;
  int64_t n = 0;
  for (const auto& [name, tensor] : named_tensors((*whole)->policy())) n += tensor.numel();
  EXPECT_EQ(last[0]["weight_bytes"], 4 * n);
  EXPECT_GT(first[1]["weights_changed"].get<double>(), 0.9) << "the first time, all of them";
  const double changed = last[1]["weights_changed"];
  EXPECT_GT(changed, 0);
  EXPECT_LT(changed, 0.2);
  EXPECT_LT(last[1]["weight_bytes"].get<double>(), 0.7 * n) << "of " << 4 * n;
  EXPECT_EQ(rows("f32").at(1)["loss"].is_number(), true);
}

TEST_F(Instruments, TheAnchorFiresWhenItShouldAndCountsItsBytes) {
  const std::vector<std::string> anchored = plus(kFrlr, {"anchor.every=3", "grpo.ticks=2", "run.steps=5"});
  const uint64_t off = run("off", with(plus(kFrlr, {"grpo.ticks=2", "run.steps=5"})));
  EXPECT_NE(run("on", with(anchored)), off);
  int64_t n = 0, fires = 0;
  const auto opened = open("on", with(anchored), /*resume=*/true);
  ASSERT_TRUE(opened) << opened.error().message;
  for (const auto& [name, tensor] : named_tensors((*opened)->policy())) n += tensor.numel();
  for (const auto& [step, row] : rows("on")) {
    const auto now = row["anchor_fired"].get<int64_t>();
    fires += now;
    EXPECT_EQ(row["anchor_fires"], fires);
    EXPECT_EQ(fires, step * 2 / 3) << "floor(ticks / every)";
    EXPECT_EQ(row["wire_bytes_slow"], now * ((n + 7) / 8));
    EXPECT_EQ(row["ratio_max_dev"].get<double>() == 0, false) << "two ticks";
  }
  // The masks send less, and both ends have the same.
  run("masked", with(plus(anchored, {"anchor.masked=true"})));
  const auto masked = rows("masked");
  for (const auto& [step, row] : masked)
    if (row["anchor_fired"] == 1) {
      EXPECT_LT(row["wire_bytes_slow"].get<double>(), 0.95 * static_cast<double>(n) / 8);
      EXPECT_GE(row["wire_bytes_slow"].get<double>(), 0.65 * static_cast<double>(n) / 8);
    }
}

TEST_F(Instruments, AnAnchoredRunResumes) {
  const std::vector<std::string> settings = plus(kFrlr, {"anchor.every=3", "anchor.masked=true"});
  const uint64_t whole = run("whole", with(settings));
  run("parts", with(plus(settings, {"run.steps=2"})));
  EXPECT_EQ(run("parts", with(settings), /*resume=*/true), whole);
  EXPECT_EQ(rows("whole"), rows("parts"));
  const RunFile a = read_run_file(*storage_, run_file_path(directory("whole"), 4)).value();
  const RunFile b = read_run_file(*storage_, run_file_path(directory("parts"), 4)).value();
  EXPECT_EQ(a.facts.at("hash"), b.facts.at("hash"));
  EXPECT_EQ(a.facts.at("anchor"), b.facts.at("anchor"));
}

}  // namespace
}  // namespace forebay::train
