// forebay train monitor, ledger and delta from the command line.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/child_process.h"
#include "safetensors/safetensors.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

class CheckpointCommands : public testing::Test {
 protected:
  Output run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), FOREBAY_TRAIN_PROGRAM);
    Result<Output> output = output_of(arguments, std::chrono::seconds(60));
    EXPECT_OK(output);
    return output ? *output : Output{-1, "", ""};
  }
  std::string file(const char* name) { return (folder_ / name).string(); }

  void write(const char* name, float scale, std::map<std::string, std::string> metadata,
             const std::vector<std::string>& names = {"model.layers.0.up.weight"}) {
    std::vector<float> values(64 * 32);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 2654435761u) % 1000) / 500 - 1 + (i % 50 == 0 ? scale : 0);
    std::vector<SafeTensorData> tensors;
    for (const std::string& tensor : names)
      tensors.push_back({tensor, SafeType::kF32, {64, 32}, std::as_bytes(std::span(values))});
    ASSERT_OK(write_safetensors(*storage_, folder_ / name, tensors, metadata));
  }
  void write_text(const char* name, std::string_view text) {
    const auto out = storage_->create(folder_ / name).value();
    ASSERT_OK(out->append(std::as_bytes(std::span(text))));
    ASSERT_OK(out->close());
  }

  TemporaryDirectory folder_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
};

TEST_F(CheckpointCommands, OfARunsCheckpointTheWeightsAreRead) {
  const std::string name = "model.layers.0.up.weight";
  write("base", 0, {});
  write("grpo0", 0, {{"step", "0"}}, {"policy." + name, "reference." + name});
  write("grpo9", 0.5, {{"step", "9"}},
        {"optimizer.adam.m." + name, "policy." + name, "reference." + name, "sampler." + name});
  write("fit9", 0.5, {{"step", "9"}}, {"adam.m." + name, "adam.v." + name, "model." + name});
  for (const char* from : {"base", "grpo0"})
    for (const char* to : {"grpo9", "fit9"}) {
      const Output shown = run({"monitor", file(from), file(to), "--json"});
      ASSERT_EQ(shown.code, 0) << shown.err;
      EXPECT_NE(shown.out.find("\"" + name + "\""), std::string::npos) << shown.out;
      for (const char* other : {"policy.", "adam.", "reference.", "sampler."})
        EXPECT_EQ(shown.out.find(other), std::string::npos) << shown.out;
    }
  EXPECT_EQ(run({"delta", "make", file("grpo0"), file("grpo9"), "-o", file("a")}).code, 0);
  const Output applied = run({"delta", "apply", file("grpo0"), file("a"), "-o", file("again")});
  ASSERT_EQ(applied.code, 0) << applied.err;
  const auto again = SafetensorsFile::open(*storage_, folder_ / "again");
  ASSERT_OK(again);
  ASSERT_EQ(again->tensors().size(), 1u) << "a model, not a run";
  EXPECT_EQ(again->tensors()[0].name, name);
}

TEST_F(CheckpointCommands, DeltasMakeAndApplyAChain) {
  write("0", 0, {});
  write("10", 0.5, {{"step", "10"}});
  write("20", 0.7, {{"step", "20"}});
  EXPECT_EQ(run({"delta", "make", file("0"), file("10"), "-o", file("a")}).code, 0);
  EXPECT_EQ(run({"delta", "make", file("10"), file("20"), "-o", file("b")}).code, 0);
  const Output shown = run({"delta", "show", file("b"), "--json"});
  EXPECT_EQ(shown.code, 0);
  const auto json = nlohmann::json::parse(shown.out);
  EXPECT_EQ(json["base_step"], 10);
  EXPECT_EQ(json["step"], 20);
  EXPECT_GT(json["changed"], 0);
  const Output applied = run({"delta", "apply", file("0"), file("a"), file("b"), "-o", file("again")});
  EXPECT_EQ(applied.code, 0) << applied.err;
  // The same bf16 values: nothing is changed from there.
  const Output again = run({"delta", "make", file("20"), file("again"), "-o", file("none"), "--json"});
  EXPECT_EQ(again.code, 1);  // both are of step 20
  EXPECT_NE(again.err.find("step 20"), std::string::npos) << again.err;
  const Output gap = run({"delta", "apply", file("0"), file("b"), "-o", file("x")});
  EXPECT_EQ(gap.code, 1);
  EXPECT_NE(gap.err.find("a link is missing"), std::string::npos) << gap.err;
  EXPECT_FALSE(storage_->exists(folder_ / "x"));
  EXPECT_EQ(run({"delta", "apply", file("0"), file("b")}).code, 2);
}

TEST_F(CheckpointCommands, MonitorPrintsATableOrJson) {
  write("0", 0, {});
  write("10", 0.5, {});
  const Output same = run({"monitor", file("0"), file("0"), "--json"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(nlohmann::json::parse(same.out)["layers"][0]["spectral_shift"], 0.0);
  const Output moved = run({"monitor", file("0"), file("10")});
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_NE(moved.out.find("largest angle"), std::string::npos);
  EXPECT_EQ(run({"monitor", file("0"), file("nothing")}).code, 1);
}

TEST_F(CheckpointCommands, LedgerTakesTheGapApart) {
  write_text(
      "views",
      "{\"view\":\"sampler\",\"log_probs\":[-1,-2]}\n{\"view\":\"boundary 0\",\"log_probs\":[-2,-4]}\n");
  const Output ledger = run({"ledger", file("views"), "--json"});
  ASSERT_EQ(ledger.code, 0) << ledger.err;
  EXPECT_EQ(nlohmann::json::parse(ledger.out)["gap"], 1.5);
}

}  // namespace
}  // namespace forebay
