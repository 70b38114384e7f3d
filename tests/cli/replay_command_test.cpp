// forebay replay from outside.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/storage.h"
#include "program.h"
#include "support/synthetic_routes.h"
#include "support/temporary_directory.h"
#include "trace/trace.h"

namespace forebay::cli {
namespace {

using nlohmann::json;

struct Traced {
  Traced() : file((folder / "run.trace").string()) {
    const testing::SyntheticShape shape{.n_blocks = 3, .n_experts = 24, .n_used = 3};
    const std::unique_ptr<Storage> storage = make_posix_storage();
    const std::unique_ptr<TraceWriter> writer =
        TraceWriter::create(*storage, file, {"tiny", 24, 3, {1000, 1000, 1000}, {1024, 1024, 1024}}).value();
    testing::SyntheticRoutes routes(shape);
    for (int part = 0; part < 3; ++part) routes.window(RoutePhase::kPrefill, 20, *writer);
    for (int t = 0; t < 40; ++t) routes.window(RoutePhase::kDecode, 1, *writer);
    EXPECT_TRUE(writer->finish().has_value());
  }

  Finished replay(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"replay", file});
    return run_program(flags);
  }
  json json_of(std::vector<std::string> flags) const {
    flags.push_back("--json");
    const Finished finished = replay(std::move(flags));
    EXPECT_EQ(finished.code, 0) << finished;
    return json::parse(finished.out, nullptr, false);
  }

  TemporaryDirectory folder;
  std::string file;
};

TEST(ReplayCommand, PrintsARowPerCombination) {
  const Traced traced;
  const Finished table =
      traced.replay({"--policy", "lru,near-pick,belady", "--slots", "25%,50%", "--route-bias", "0,0.5"});
  ASSERT_EQ(table.code, 0) << table;
  const std::vector<std::string> lines = lines_of(table.out);
  ASSERT_EQ(lines.size(), 3u + 4 + 4 + 2) << table;
  EXPECT_TRUE(
      lines[0].starts_with("tiny: 100 tokens, 3 blocks of 24 experts, 3 per token; the first 25 tokens"))
      << lines[0];
  EXPECT_TRUE(lines[3].starts_with("lru ")) << lines[3];
  EXPECT_TRUE(lines[12].starts_with("belady ")) << lines[12];
  EXPECT_EQ(table.err, "");
}

TEST(ReplayCommand, JsonHoldsTheWholeResult) {
  const Traced traced;
  const json report = traced.json_of({"--policy", "decay,belady", "--slots", "18,50%,20K", "--warmup", "40"});
  EXPECT_EQ(report["tokens"], 100);
  EXPECT_EQ(report["warm_up_tokens"], 40);
  EXPECT_EQ(report["complete"], true);
  ASSERT_EQ(report["results"].size(), 6u);
  EXPECT_EQ(report["config"]["policy"], "decay,belady");
  for (const json& row : report["results"]) {
    const json &counted = row["counted"], &warm_up = row["warm_up"];
    EXPECT_EQ(counted["tokens"], 60);
    EXPECT_EQ(warm_up["tokens"], 40);
    EXPECT_GT(counted["misses"], 0);
    EXPECT_NEAR(row["misses_per_token"].get<double>(), counted["misses"].get<double>() / 60, 1e-9);
    EXPECT_EQ(counted["bytes_read"], counted["misses"].get<int>() * 1000);
    EXPECT_GE(row["gap_to_min"], row["policy"] == "decay" ? 1e-9 : 0);
    EXPECT_GT(row["seconds_per_token"], 0);
  }
  EXPECT_EQ(report["results"][0]["budget_bytes"], 18 * 1024);
  EXPECT_EQ(report["results"][2]["budget_bytes"], 20 * 1024);
}

/// Every flag changes what it should, against the same run without it.
TEST(ReplayCommand, FlagsAreLive) {
  const Traced traced;
  const std::vector<std::string> base = {"--policy",     "decay", "--slots",   "25%",
                                         "--route-bias", "20",    "--protect", "1"};
  const json plain = traced.json_of(base)["results"];
  const auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), base.begin(), base.end());
    return traced.json_of(flags)["results"];
  };
  const std::string pruned = (traced.folder / "pruned").string();
  std::ofstream(pruned) << "0 1 2 3\n2 5 6 7 8\n";
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--window", "5"},
                                             {"--half-life", "3"},
                                             {"--warmup", "60"},
                                             {"--phase", "decode"},
                                             {"--phase", "prefill", "--warmup", "0"},
                                             {"--prune", pruned},
                                             {"--disk-rate", "0.1"},
                                             {"--shelf", "10%"},
                                             {"--route-bias-prompt", "20"},
                                             {"--disk-latency", "700"},
                                             {"--memory-rate", "0.01"}})
    EXPECT_NE(with(flags), plain) << flags[0];
  EXPECT_NE(with({"--shelf", "10%", "--guess-right", "0"}), with({"--shelf", "10%"}));
  // All three that a row uses.
  EXPECT_NE(traced.json_of(
                {"--policy", "decay", "--slots", "25%", "--route-bias", "0.5", "--protect", "3"})["results"],
            plain);
  EXPECT_EQ(with({"--threads", "3"}), plain);
  EXPECT_EQ(with({"--phase", "all"}), plain);
}

TEST(ReplayCommand, MistakesAreOneLine) {
  const Traced traced;
  EXPECT_TRUE(is_error(run_program({"replay"}), 2, {"TRACE"}));
  EXPECT_TRUE(
      is_error(traced.replay({"--policy", "lru,fifo"}), 2, {"--policy", "'fifo'", "near-pick", "belady"}));
  EXPECT_TRUE(is_error(traced.replay({"--route-bias", "-1"}), 2, {"--route-bias", "-1"}));
  EXPECT_TRUE(is_error(traced.replay({"--route-bias-prompt", "-1"}), 2, {"--route-bias-prompt", "-1"}));
  EXPECT_TRUE(is_error(traced.replay({"--shelf", "200%"}), 2, {"--shelf"}));
  EXPECT_TRUE(is_error(traced.replay({"--half-life", "0"}), 2, {"--half-life"}));
  EXPECT_TRUE(is_error(traced.replay({"--phase", "later"}), 2, {"--phase", "'later'"}));
  EXPECT_TRUE(is_error(traced.replay({"--slots", "25%,lots"}), 1, {"--slots lots"}));
  EXPECT_TRUE(is_error(traced.replay({"--slots", "2"}), 1, {"--slots 2", "3 experts at once", "3072 bytes"}));
  EXPECT_TRUE(is_error(traced.replay({"--warmup", "100"}), 1, {"--warmup", "100 tokens"}));
  EXPECT_TRUE(is_error(run_program({"replay", traced.folder / "none"}), 1, {"none"}));
  const std::string pruned = (traced.folder / "pruned").string();
  std::ofstream(pruned) << "0 1\n1 x\n";
  EXPECT_TRUE(is_error(traced.replay({"--prune", pruned}), 1, {"pruned", "line 2", "'x'"}));
  std::ofstream(pruned) << "0 24\n";
  EXPECT_TRUE(is_error(traced.replay({"--prune", pruned}), 1, {"expert 24 of block 0"}));
  std::ofstream(traced.file, std::ios::binary) << "GGUF";
  EXPECT_TRUE(is_error(traced.replay({}), 1, {"run.trace", "not a trace"}));
}

TEST(ReplayCommand, DrawsAPictureOrSaysWhyNot) {
  const Traced traced;
  const std::string png = (traced.folder / "misses.png").string();
  const Finished drawn = traced.replay({"--slots", "10%,25%,50%", "--plot", png});
  if (drawn.code == 0) {
    std::ifstream file(png, std::ios::binary);
    std::string start(8, '\0');
    file.read(start.data(), 8);
    EXPECT_EQ(start, "\x89PNG\r\n\x1a\n");
    EXPECT_FALSE(std::filesystem::exists(png + ".partial"));
  } else {
    EXPECT_NE(drawn.err.find("there is no gnuplot"), std::string::npos) << drawn;
  }

  // One size, and none that misses: axes of one value.
  const std::string point = (traced.folder / "point.png").string();
  for (const char* slots : {"25%", "100%"}) {
    const Finished finished = traced.replay({"--slots", slots, "--plot", point});
    EXPECT_EQ(finished.code == 0, drawn.code == 0) << finished;
    EXPECT_EQ(finished.err.find("arning"), std::string::npos) << finished;
  }

  const std::string nothing = (traced.folder / "bin").string();
  std::filesystem::create_directory(nothing);
  const Finished without =
      run_program({"replay", traced.file, "--plot", png + "2"}, {.environment = {"PATH=" + nothing}});
  EXPECT_EQ(without.code, 1) << without;
  EXPECT_NE(without.err.find("there is no gnuplot"), std::string::npos) << without;
  EXPECT_NE(without.out, "") << "the table all the same";
  EXPECT_FALSE(std::filesystem::exists(png + "2"));
}

}  // namespace
}  // namespace forebay::cli
