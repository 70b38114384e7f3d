#include "eval/kld.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(KlDivergence, EqualsTheDefinition) {
  const std::vector<float> p{1.0f, 2.0f, -0.5f}, q{0.5f, 2.5f, 3.0f};
  const auto softmax = [](const std::vector<float>& logits) {
    std::vector<double> probabilities;
    double sum = 0;
    for (double x : logits) sum += std::exp(x);
    for (double x : logits) probabilities.push_back(std::exp(x) / sum);
    return probabilities;
  };
  double want = 0;
  for (int i = 0; i < 3; ++i) want += softmax(p)[i] * std::log(softmax(p)[i] / softmax(q)[i]);
  EXPECT_NEAR(kl_divergence(p, q), want, 1e-12);
  EXPECT_EQ(kl_divergence(p, p), 0.0);
  std::vector<float> shifted(p);
  for (float& x : shifted) x += 100.0f;
  EXPECT_NEAR(kl_divergence(p, shifted), 0.0, 1e-6);
}

TEST(MeasureKld, AModelIsAtDistanceZeroFromItself) {
  const std::string model = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "models/pebble.gguf is not there";
  EngineOptions options;
  options.model = model;
  options.chunk = 64;
  Engine a = Engine::open(options).value();
  options.chunk = 256;
  options.threads = 1;
  Engine b = Engine::open(options).value();
  const EvalText text{
      "chat",
      "<|im_start|>user\nWhat is 3 + 4?<|im_end|>\n<|endoftext|><|im_start|>user\nAnd 5 + 6?<|im_end|>\n"};
  const std::vector<KldWindow> windows = cut_windows(a, {&text, 1}, {}).value();
  const Result<KldReport> same = measure_kld(*computed_reference(a), b, {&text, 1}, windows, {}, {}, {});
  ASSERT_TRUE(same.has_value()) << same.error().message;
  EXPECT_EQ(same->total.max, 0.0);
  EXPECT_EQ(same->total.top1, 1.0);
  EXPECT_EQ(same->total.n_windows, 2);  // a document each
  EXPECT_TRUE(same->flips.empty());
  EXPECT_GT(same->total.reference_nll, 0.0);
  EXPECT_EQ(same->total.reference_nll, same->total.candidate_nll);

  const EvalText nothing{"empty", "x"};
  KldOptions too_short;
  too_short.window_tokens = 1;
  EXPECT_FALSE(cut_windows(a, {&nothing, 1}, too_short).has_value());
}

// Case 43: a bias in prompts is one in a text that is read as a prompt, but for its end.
TEST(MeasureKld, ABiasInPromptsCostsSomethingBeforeTheEnd) {
  const std::string model = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "models/pebble.gguf is not there";
  EngineOptions options;
  options.model = model;
  options.chunk = 4;
  Engine exact = Engine::open(options).value();
  options.experts = ExpertPlacement::kStreamed;
  options.budget_bytes = uint64_t{44} << 20;
  options.prefetch = false;
  options.route_bias_prompt = 4;
  Engine biased = Engine::open(options).value();
  std::string words;
  for (int i = 0; i < 40; ++i) words += "the " + std::to_string(i * i) + " wide rivers, ";
  const auto mean_of = [&](const std::string& text, int64_t tokens) {
    const EvalText one{"text", text};
    KldOptions kld;
    kld.max_tokens = tokens;
    const std::vector<KldWindow> windows = cut_windows(exact, {&one, 1}, kld).value();
    return measure_kld(*computed_reference(exact), biased, {&one, 1}, windows, kld, {}, {})->total.mean;
  };
  EXPECT_EQ(mean_of(words, 32), 0) << "all of it is the end";
  EXPECT_GT(mean_of(words, 150), 1e-5);
}

}  // namespace
}  // namespace forebay
