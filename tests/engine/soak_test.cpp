// Case 46, in short: requests come and go, and what the process owns does not grow. bench/soak_bench.cpp is
// the long one.
#include <filesystem>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "core/memory_info.h"

namespace forebay {
namespace {

TEST(Soak, MemoryIsFlatAfterWarmUp) {
  const std::string model = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "models/pebble.gguf is not there";
  EngineOptions options;
  options.model = model;
  options.threads = 2;
  options.context = 512;
  options.int8_activations = true;
  options.experts = ExpertPlacement::kStreamed;
  options.budget_bytes = uint64_t{40} << 20;
  Result<Engine> engine = Engine::open(options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  GenerateOptions answer;
  answer.max_tokens = 6;
  answer.ignore_stop_tokens = true;
  answer.sampling.top_p = 0.9f;
  const auto ask = [&](int r) {
    Session session = engine->new_session().value();
    std::vector<int32_t> prompt;
    for (int i = 0; i < 10 + r % 13; ++i) prompt.push_back((r * 131 + i * 17) % 1500 + 10);
    answer.sampling.seed = static_cast<uint64_t>(r);
    const auto report = session.generate(prompt, answer, [](const GeneratedToken&) { return true; });
    ASSERT_TRUE(report.has_value()) << report.error().message;
  };
  // The arena fills first.
  for (int r = 0; r < 40; ++r) ask(r);
  const uint64_t before = process_memory().anonymous, reserved = engine->reserved_bytes();
  const uint64_t rows = engine->ngram_bytes();
  for (int r = 40; r < 140; ++r) ask(r);
  const uint64_t after = process_memory().anonymous;
  EXPECT_LE(after, before + (uint64_t{1} << 20)) << "100 requests made it grow by " << after - before;
  EXPECT_EQ(engine->reserved_bytes(), reserved);
  // The table's rows lie in the page cache, and are told apart.
  EXPECT_GT(rows, 0u);
  EXPECT_EQ(engine->ngram_bytes(), rows) << "a small table is there from the beginning";
  EXPECT_LE(engine->expert_stats()->peak_bytes, engine->expert_stats()->budget_bytes);
}

}  // namespace
}  // namespace forebay
