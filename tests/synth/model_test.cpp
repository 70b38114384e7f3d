// Small cuts of every family load, and run long without growing or dying.
#include <cmath>

#include <gtest/gtest.h>

#include "small_models.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"
#include "test_models.h"

namespace forebay::synth {
namespace {

class SyntheticModel : public ::testing::TestWithParam<const char*> {};

TEST_P(SyntheticModel, RunsLongWithLogitsOfTheWantedSize) {
  const TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  ThreadPool pool(2);
  const SynthOptions options = small_options(GetParam());
  ASSERT_OK(write_synthetic(*storage, folder / "m.gguf", must(plan_synthetic(options)), pool,
                            [](const SynthProgress&) {}, {}));
  forebay::testing::LoadedModel model(folder / "m.gguf");
  EXPECT_EQ(model.model->config().n_blocks, 4);
  EXPECT_EQ(model.model->config().ffn.n_experts, 8);

  std::vector<int32_t> ids;
  for (uint64_t i = 0; i < 1500; ++i) ids.push_back(static_cast<int32_t>(Key{5}.word(i) % 512));
  const std::vector<float> logits = model.logits(ids);
  ASSERT_EQ(logits.size(), ids.size() * 512);
  for (const size_t first : {size_t{0}, logits.size() / 2, logits.size() - 100 * 512}) {
    double squares = 0;
    for (size_t i = first; i < first + 100 * 512; ++i) {
      ASSERT_TRUE(std::isfinite(logits[i])) << i;
      squares += static_cast<double>(logits[i]) * logits[i];
    }
    const double deviation = std::sqrt(squares / (100 * 512));
    EXPECT_GT(deviation, 2) << "at row " << first / 512;
    EXPECT_LT(deviation, 6) << "at row " << first / 512;
  }
}

TEST(SyntheticTypes, FormatsWithoutAnEncoderRunToo) {
  const TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  ThreadPool pool(2);
  for (const char* type : {"q4_k", "q2_0", "iq2_xs", "iq2_s", "q8_0", "iq1_m", "iq3_xxs"}) {
    SCOPED_TRACE(type);
    SynthOptions options = small_options("qwen3-30b-a3b", type);
    GeometryChanges changes = small_changes("qwen3-30b-a3b");
    changes.n_blocks = 2;
    changes.d_model = 256;
    changes.expert_width = 256;
    options.geometry = must(changed(must(find_geometry("qwen3-30b-a3b")), changes));
    ASSERT_OK(write_synthetic(*storage, folder / "m.gguf", must(plan_synthetic(options)), pool,
                              [](const SynthProgress&) {}, {}));
    forebay::testing::LoadedModel model(folder / "m.gguf");
    const TensorInfo* experts = model.file->find("blk.1.ffn_down_exps.weight");
    ASSERT_NE(experts, nullptr);
    EXPECT_EQ(experts->type, *dtype_from_name(type));
    model.kernels.set_activations(Activations::kInt8);
    for (const float logit : model.logits({1, 2, 3, 5, 8, 13})) ASSERT_TRUE(std::isfinite(logit));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SyntheticModel,
                         ::testing::Values("qwen3.8-flash-next", "qwen3-next-80b", "qwen3.5-35b-a3b",
                                           "qwen3-30b-a3b"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '-' || c == '.') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace forebay::synth
