// forebay plan and forebay doctor from outside.
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/memory_info.h"
#include "program.h"
#include "scripted_model.h"
#include "support/temporary_directory.h"
#include "test_models.h"

namespace forebay::cli {
namespace {

using nlohmann::json;

const std::vector<std::string> kRates = {"--disk-rate", "2GB", "--memory-rate", "20GB"};

std::vector<std::string> with_rates(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), kRates.begin(), kRates.end());
  return arguments;
}

json plan_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "plan");
  arguments.push_back("--json");
  const Finished finished = run_program(with_rates(arguments));
  return json::parse(finished.out, nullptr, false);
}

std::string mixture() {
  return testing::converted_vectors("qwen3moe", "q8_0").string();
}

TEST(PlanCommand, TellsEveryPartAndTheSpeed) {
  const Finished finished = run_program(with_rates({"plan", mixture(), "--budget", "64M", "--chunk", "16"}));
  ASSERT_EQ(finished.code, 0) << finished;
  for (const char* part :
       {"budget 64.0 MiB", "trunk", "state", "scratch", "experts", "sum", "hits", "tok/s", "given"})
    EXPECT_NE(finished.out.find(part), std::string::npos) << part << " in\n" << finished.out;
  EXPECT_EQ(finished.err, "");
}

TEST(PlanCommand, MeasuresWhatIsNotGiven) {
  const Finished finished = run_program({"plan", mixture(), "--budget", "64M", "--chunk", "16", "--json"});
  ASSERT_EQ(finished.code, 0) << finished;
  const json plan = json::parse(finished.out);
  EXPECT_NE(plan["rates"]["disk_source"].get<std::string>().find("measured"), std::string::npos);
  EXPECT_NE(plan["rates"]["memory_source"].get<std::string>().find("measured"), std::string::npos);
  EXPECT_GT(plan["rates"]["weights_bytes_per_second"]["Q8_0"].get<double>(), 0);
}

/// Case 43: every documented flag changes something that can be seen.
TEST(PlanCommand, EveryFlagChangesThePlan) {
  const std::vector<std::string> base = {mixture(), "--budget", "64M", "--chunk", "64", "-c", "100"};
  const json before = plan_json(base);
  ASSERT_TRUE(before.is_object());
  EXPECT_TRUE(before["fits"].get<bool>());
  const auto changed = [&](const char* flag, const char* value, const char* part) {
    std::vector<std::string> arguments = base;
    const auto at = std::find(arguments.begin(), arguments.end(), flag);
    if (at != arguments.end()) {
      *(at + 1) = value;
    } else {
      arguments.emplace_back(flag);
      if (*value != 0) arguments.emplace_back(value);
    }
    const json after = plan_json(arguments);
    EXPECT_TRUE(after.is_object()) << flag;
    EXPECT_NE(after[part].dump(), before[part].dump()) << flag << " changes " << part;
  };
  changed("--budget", "65M", "budget_bytes");
  changed("--chunk", "32", "items");
  changed("-c", "200", "items");
  changed("--sim-ram", "3G", "memory");
  {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), {"--sim-ram", "3G", "--sim-used", "1G"});
    EXPECT_EQ(plan_json(arguments)["memory"]["available"], uint64_t{2} << 30);
  }
  const auto rates = [&](std::vector<std::string> flags) {
    std::vector<std::string> arguments = {"plan", mixture(), "--budget", "64M", "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return json::parse(run_program(arguments).out)["rates"];
  };
  EXPECT_EQ(rates({"--disk-rate", "3GB", "--memory-rate", "20GB"})["disk_bytes_per_second"], 3e9);
  EXPECT_EQ(rates({"--disk-rate", "3GB", "--memory-rate", "30GB"})["memory_bytes_per_second"], 30e9);
  EXPECT_NE(rates({"-t", "1"})["memory_source"].get<std::string>().find("1 threads"), std::string::npos);
  EXPECT_NE(run_program(with_rates({"plan", mixture(), "-v"})).err.find("chunk = 0"), std::string::npos);

  const std::string with_head = testing::embedded_model().string();
  const json without = plan_json({with_head, "--budget", "128M"});
  const json with = plan_json({with_head, "--budget", "128M", "--mtp"});
  EXPECT_FALSE(without["items"].contains("draft_head"));
  EXPECT_TRUE(with["items"].contains("draft_head"));
  const json apart = plan_json({with_head, "--budget", "128M", "--mtp-model", with_head});
  EXPECT_EQ(apart["items"]["draft_head"], with["items"]["draft_head"]);
}

/// The hits that a recording gives, instead of a published curve; of another model's, an error.
TEST(PlanCommand, TakesHitsFromATrace) {
  const TemporaryDirectory folder;
  const std::string trace = (folder / "run.trace").string(), model = testing::embedded_model().string();
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "models/pebble.gguf is not there";
  const Finished traced = run_program({"run", "-m", model, "--raw", "-p", "The lock keeper", "-n", "60",
                                       "--temp", "0", "--budget", "40M", "--trace", trace});
  ASSERT_EQ(traced.code, 0) << traced;
  const std::vector<std::string> base = {model, "--budget", "40M", "--chunk", "64"};
  const auto with_trace = [&](const std::string& budget) {
    return plan_json({model, "--budget", budget, "--chunk", "64", "--trace", trace});
  };
  const json published = plan_json(base), measured = with_trace("40M");
  EXPECT_NE(published["hit_source"].get<std::string>().find("published"), std::string::npos);
  EXPECT_NE(measured["hit_source"].get<std::string>().find("measured: a trace of"), std::string::npos)
      << measured.dump();
  EXPECT_NE(measured["hit_rate"], published["hit_rate"]);
  EXPECT_GT(measured["hit_rate"], 0.1);
  EXPECT_LT(measured["hit_rate"], 1);
  EXPECT_LE(with_trace("38M")["hit_rate"], measured["hit_rate"]);
  EXPECT_TRUE(is_error(run_program(with_rates({"plan", mixture(), "--budget", "64M", "--trace", trace})), 1,
                       {"--trace", "8 blocks of 64 experts"}));
}

/// Case 44: says no before it allocates, with what would fit.
TEST(PlanCommand, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(is_error(run_program(with_rates({"plan", mixture(), "--budget", "1M"})), 1,
                       {"budget: 1.00 MiB", "trunk", "would fit: --budget"}));
  EXPECT_TRUE(is_error(run_program(with_rates({"plan", mixture(), "--budget", "64G", "--sim-ram", "16G"})), 1,
                       {"64.0 GiB", "--budget 13440M"}));
  EXPECT_TRUE(is_error(run_program(with_rates({"plan", mixture(), "--sim-ram", "200K"})), 1, {"no context"}));

  const json refusal = plan_json({mixture(), "--budget", "1M"});
  ASSERT_TRUE(refusal.is_object());
  EXPECT_FALSE(refusal["fits"].get<bool>());
  const auto least = refusal["least_budget_bytes"].get<uint64_t>();
  EXPECT_GT(least, uint64_t{1} << 20);
  EXPECT_TRUE(plan_json({mixture(), "--budget", std::to_string(least)})["fits"].get<bool>());
  EXPECT_FALSE(plan_json({mixture(), "--budget", std::to_string(least - 1)})["fits"].get<bool>());
}

TEST(PlanCommand, PlansModelsThatAreNotHere) {
  const json plan = plan_json({"--like", "qwen3-30b-a3b", "--type", "q4_k", "--sim-ram", "16G"});
  ASSERT_TRUE(plan.is_object());
  EXPECT_EQ(plan["model"], "Qwen3 30B A3B");
  // 48 blocks, 8 of 128 experts, 3 planes of 2048 x 768 at 4.5 bits.
  EXPECT_EQ(plan["cold_bytes_per_token"], 48ull * 8 * 3 * 2048 * 768 * 144 / 256);
  EXPECT_TRUE(
      is_error(run_program({"plan", "--like", "gpt-7", "--type", "q4_k"}), 1, {"gpt-7", "qwen3-30b-a3b"}));
}

TEST(PlanCommand, MisuseIsNamed) {
  EXPECT_TRUE(is_error(run_program({"plan", "a", "--like", "b", "--type", "q8_0"}), 2, {"exclude"}));
  EXPECT_TRUE(is_error(run_program({"plan", "--like", "b"}), 2, {"--type"}));
  EXPECT_TRUE(is_error(run_program({"plan", "a", "--sim-used", "1G"}), 2, {"--sim-ram"}));
  EXPECT_TRUE(
      is_error(run_program({"plan", "a", "--sim-ram", "2G", "--sim-used", "x"}), 2, {"--sim-used", "x"}));
  EXPECT_TRUE(is_error(run_program({"plan", "--like", "b", "--type", "q8_0", "--mtp-model", "c"}), 2,
                       {"--mtp-model"}));
  EXPECT_TRUE(is_error(run_program(with_rates({"plan", "no/such/file"})), 1, {"no/such/file"}));
  EXPECT_TRUE(is_error(run_program(with_rates({"plan", mixture(), "--mtp"})), 1, {"--mtp", "draft head"}));
}

TEST(DoctorCommand, MeasuresAndPredicts) {
  TemporaryDirectory folder;
  const Finished finished = run_program({"doctor", "--dir", folder.path().string(), "--size", "16M",
                                         "--seconds", "0.02", "--sim-ram", "16G", "--json"});
  ASSERT_EQ(finished.code, 0) << finished;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const json report = json::parse(finished.out);
  EXPECT_GE(report["cores"].get<int>(), 1);
  EXPECT_GT(report["rates"]["memory_bytes_per_second"].get<double>(), 0);
  for (const char* type : {"Q8_0", "Q2_0", "Q2_K", "IQ2_XS", "Q4_K"})
    EXPECT_GT(report["rates"]["weights_bytes_per_second"][type].get<double>(), 0) << type;
  EXPECT_EQ(report["disk"]["file_bytes"], 16u << 20);
  ASSERT_EQ(report["disk"]["reads"].size(), 3u);
  for (const json& read : report["disk"]["reads"]) {
    EXPECT_GT(read["bytes_per_second"].get<double>(), 0) << read;
    EXPECT_GT(read["n"].get<int>(), 0) << read;
  }
  EXPECT_FALSE(report["disk"]["notes"].empty());
  EXPECT_TRUE(report["io_uring"].is_boolean());
  EXPECT_GT(report["memory"]["total"].get<uint64_t>(), 0u);
  EXPECT_EQ(report["planned_memory"]["total"], uint64_t{16} << 30);

  ASSERT_EQ(report["models"].size(), 12u);
  bool one_fits = false;
  for (const json& model : report["models"]) {
    EXPECT_TRUE(model["predicted"].get<bool>());
    EXPECT_EQ(model["fits"].get<bool>(), model["plan"].is_object());
    EXPECT_EQ(model["fits"].get<bool>(), model["least_budget_bytes"].get<uint64_t>() <=
                                             report["planned_memory"]["usable"].get<uint64_t>() -
                                                 report["planned_memory"]["margin"].get<uint64_t>());
    one_fits = one_fits || model["fits"].get<bool>();
  }
  EXPECT_TRUE(one_fits);
}

TEST(DoctorCommand, GivenRatesNeedNoMeasurement) {
  const std::vector<std::string> arguments =
      with_rates({"doctor", "--dir", "no/such/folder", "--sim-ram", "24G"});
  const Finished first = run_program(arguments);
  ASSERT_EQ(first.code, 0) << first;
  for (const char* part : {"predicted", "simulated", "qwen3.8-flash-next", "qwen3-next-80b",
                           "qwen3.5-35b-a3b", "qwen3-30b-a3b", "tok/s", "(given)"})
    EXPECT_NE(first.out.find(part), std::string::npos) << part << " in\n" << first.out;
  // What doctor says of a model is what plan says.
  const json plan = plan_json(
      {"--like", "qwen3.5-35b-a3b", "--type", "q4_k,*ffn_down_exps.weight=q5_k", "--sim-ram", "24G"});
  std::vector<std::string> more = arguments;
  more.push_back("--json");
  const json report = json::parse(run_program(more).out);
  bool found = false;
  for (const json& model : report["models"]) {
    if (model["name"] != "qwen3.5-35b-a3b" || model["experts"] != "Q4_K") continue;
    found = true;
    EXPECT_EQ(model["plan"]["arena_bytes"], plan["arena_bytes"]);
    EXPECT_EQ(model["plan"]["tokens_per_second"], plan["tokens_per_second"]);
  }
  EXPECT_TRUE(found);
}

TEST(DoctorCommand, AnInterruptLeavesNothing) {
  TemporaryDirectory folder;
  TerminalProgram doctor({"doctor", "--dir", folder.path().string(), "--size", "64M", "--seconds", "20"});
  ASSERT_TRUE(doctor.sees("test file")) << doctor.seen();
  doctor.signal(SIGINT);
  EXPECT_EQ(doctor.finish(), 130) << doctor.seen();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DoctorCommand, SaysWhenThereIsNoDisk) {
  const std::string memory = "/dev/shm";
  if (!std::filesystem::is_directory(memory)) GTEST_SKIP() << "no " << memory << " here";
  const Finished finished = run_program({"doctor", "--dir", memory, "--size", "8M", "--seconds", "0.01",
                                         "--memory-rate", "20GB", "--sim-ram", "16G"});
  ASSERT_EQ(finished.code, 0) << finished;
  EXPECT_NE(finished.out.find("is in memory"), std::string::npos) << finished.out;
}

TEST(DoctorCommand, FoldersThatDoNotServeAreNamed) {
  EXPECT_TRUE(is_error(run_program({"doctor", "--dir", "no/such/folder"}), 1, {"no/such/folder"}));
  TemporaryDirectory folder;
  EXPECT_TRUE(is_error(run_program({"doctor", "--dir", folder.path().string(), "--size", "9000T"}), 1,
                       {folder.path().string(), "bytes free", "wanted"}));
  EXPECT_TRUE(is_error(run_program({"doctor", "--size", "1M"}), 2, {"--size", "1048576"}));
}

}  // namespace
}  // namespace forebay::cli
