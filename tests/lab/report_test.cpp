// Reports: what they say of a program that was run, and that they can be made of one that was not finished.
#include "lab/report.h"

#include <gtest/gtest.h>

#include "support/memory_storage.h"
#include "support/result_matchers.h"

namespace forebay::lab {
namespace {

MemoryStorage program() {
  MemoryStorage storage;
  Records records = Records::open(storage, "d/records.jsonl").value();
  EXPECT_OK(
      records.append("program", {{"name", "arms"}, {"control", "dense"}, {"budget_s", 100}, {"horizon", 0}}));
  for (const char* cell : {"dense", "prf", "waits"})
    EXPECT_OK(
        records.append("registered", {{"cell", cell},
                                      {"role", std::string(cell) == "dense" ? "reference" : "entrant"},
                                      {"variable", {{"key", "wire.codec"}, {"from", "a"}, {"to", "b"}}}}));
  for (const char* cell : {"dense", "prf"}) {
    EXPECT_OK(records.append("started", {{"cell", cell}}));
    EXPECT_OK(records.append("cost", {{"cell", cell}, {"device_s", 12.5}}));
  }
  EXPECT_OK(records.append("ended", {{"cell", "dense"}, {"outcome", "complete"}}));
  EXPECT_OK(records.append("verdict",
                           {{"cell", "dense"}, {"gate", "study.G2"}, {"outcome", "pass"}, {"value", 1e-5}}));
  EXPECT_OK(records.append("verdict",
                           {{"cell", "prf"}, {"gate", "learns-some"}, {"outcome", "fail"}, {"value", -0.2}}));
  std::string dense, prf;
  for (int step = 1; step <= 50; ++step) {
    const std::string at = "{\"step\":" + std::to_string(step);
    dense += at + ",\"reward\":0.6,\"gap\":0.001,\"kl_view\":0.1,\"kl_dense\":0.1,\"step_s\":1}\n";
    prf += at + ",\"reward\":0.5,\"gap\":1.5,\"kl_view\":2,\"kl_dense\":0.05,\"step_s\":2}\n";
  }
  storage.put("d/cells/dense/metrics.jsonl", dense);
  storage.put("d/cells/prf/metrics.jsonl", prf);
  return storage;
}

TEST(Report, SaysWhatWasMeasured) {
  MemoryStorage storage = program();
  const Result<Report> report = make_report(storage, "d", "reward");
  ASSERT_OK(report);
  ASSERT_EQ(report->cells.size(), 3u);
  EXPECT_EQ(report->cells[0].outcome, "complete");
  EXPECT_EQ(report->cells[1].outcome, "interrupted");
  EXPECT_EQ(report->cells[2].outcome, "not run");
  EXPECT_NEAR(report->cells[1].inflation, 40, 1e-9);
  EXPECT_NEAR(report->cells[1].amplification, 20, 1e-9);
  EXPECT_EQ(report->device_s, 25);
  EXPECT_EQ(report->horizon, 50);
  const std::string text = as_markdown(*report);
  EXPECT_NE(text.find("| prf |  | wire.codec: a -> b | interrupted | 50 | 12 |"), std::string::npos) << text;
  EXPECT_NE(text.find("study.G2 | pass"), std::string::npos) << text;
  EXPECT_NE(text.find("| 1 | prf | ranked | learns-some |"), std::string::npos) << text;
  EXPECT_EQ(text.find("| waits | - |"), std::string::npos) << "nothing was measured: " << text;
  EXPECT_EQ(as_json(*report)["ranking"][0]["cell"], "prf");
  EXPECT_FALSE(figure_script(*report, "gap", "the gap", "x.png").empty());
  EXPECT_TRUE(figure_script(*report, "entropy", "", "x.png").empty());
}

TEST(Report, ObjectivesWithACodecInThemAreRefused) {
  MemoryStorage storage = program();
  EXPECT_TRUE(
      fails_with(make_report(storage, "d", "kl_view"), Code::kInvalidArgument, "kl_view", "kl_dense"));
  EXPECT_TRUE(fails_with(make_report(storage, "e", "reward"), Code::kNotFound, "records"));
}

}  // namespace
}  // namespace forebay::lab
