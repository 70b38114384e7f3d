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

  void write(const char* name, float scale, std::map<std::string, std::string> metadata) {
    std::vector<float> values(64 * 32);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 2654435761u) % 1000) / 500 - 1 + (i % 50 == 0 ? scale : 0);
    const std::vector<SafeTensorData> tensors = {
        {"model.layers.0.up.weight", SafeType::kF32, {64, 32}, std::as_bytes(std::span(values))}};
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
