// A session that is saved and goes on in another engine has the bits of one that never stopped, at lengths
// around every border: the embedded model, with and without its draft head, and one made up.
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "../synth/small_models.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

const std::string kPebble = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

enum class From { kPebble, kPebbleWithDraftHead, kSynthetic };

class Restored : public ::testing::TestWithParam<From> {};

std::string write_synthetic_model(const TemporaryDirectory& folder) {
  const auto storage = make_posix_storage();
  ThreadPool pool(2);
  const SynthPlan plan = synth::must(plan_synthetic(synth::small_options("qwen3.8-flash-next", "q8_0")));
  EXPECT_OK(write_synthetic(*storage, folder / "m.gguf", plan, pool, [](const SynthProgress&) {}, {}));
  return (folder / "m.gguf").string();
}

TEST_P(Restored, IsNeverStopped) {
  const TemporaryDirectory folder;
  EngineOptions options;
  const bool synthetic = GetParam() == From::kSynthetic;
  if (!synthetic && !std::filesystem::exists(kPebble)) GTEST_SKIP() << "models/pebble.gguf is not there";
  options.model = synthetic ? write_synthetic_model(folder) : kPebble;
  options.load_mtp = GetParam() == From::kPebbleWithDraftHead;
  options.kv = std::nullopt;
  options.int8_activations = true;
  options.threads = 2;
  options.context = 1088;
  options.chunk = 256;
  Engine first = Engine::open(options).value(), second = Engine::open(options).value();
  Session going = first.new_session().value(), restored = second.new_session().value();
  const std::string file = (folder / "s.session").string();
  for (int64_t n : {1, 63, 64, 65, 257, 1000}) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < n + 9; ++i) ids.push_back(static_cast<int32_t>((i * 131 + n + i * i % 89) % 500));
    going.reset();
    ASSERT_OK(going.sync(std::span(ids).first(static_cast<size_t>(n))));
    ASSERT_OK(going.save(file));
    for (int64_t i = n; i < n + 9; ++i) ASSERT_OK(going.append(ids[static_cast<size_t>(i)]));
    const Result<int64_t> loaded = restored.load(file);
    ASSERT_OK(loaded);
    EXPECT_EQ(*loaded, n);
    const SyncReport report = restored.sync(ids).value();
    EXPECT_EQ(report.n_prefilled, 9) << report.why;
    ASSERT_EQ(restored.logits().size(), going.logits().size());
    EXPECT_EQ(std::memcmp(restored.logits().data(), going.logits().data(), going.logits().size_bytes()), 0)
        << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Restored,
                         ::testing::Values(From::kPebble, From::kPebbleWithDraftHead, From::kSynthetic),
                         [](const auto& from) {
                           return from.param == From::kPebble      ? "Pebble"
                                  : from.param == From::kSynthetic ? "Synthetic"
                                                                   : "PebbleWithDraftHead";
                         });

}  // namespace
}  // namespace forebay
