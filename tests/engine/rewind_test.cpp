// Sessions of every family gone back to every cell of two index blocks and a whole cycle of 64.
#include <cstring>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "support/result_matchers.h"
#include "test_models.h"

namespace forebay {
namespace {

class Rewinds : public ::testing::TestWithParam<std::string> {};

TEST_P(Rewinds, ToEveryAlignmentAreAsIfNothingHadFollowed) {
  EngineOptions options;
  options.model = testing::converted_vectors(GetParam()).string();
  options.context = 256;
  options.threads = 2;
  options.kv = std::nullopt;
  Engine engine = Engine::open(options).value();
  std::vector<int32_t> ids;
  for (int i = 0; i < 140; ++i) ids.push_back((i * 131 + i * i % 89) % 500);
  Session going = engine.new_session().value(), fresh = engine.new_session().value();
  for (int64_t to = 60; to < 132; ++to) {
    ASSERT_OK(going.sync(ids));
    ASSERT_OK(going.rewind(to));
    ASSERT_EQ(static_cast<int64_t>(going.tokens().size()), to);
    fresh.reset();
    ASSERT_OK(fresh.sync(std::span(ids).first(to)));
    ASSERT_EQ(going.logits().size(), fresh.logits().size());
    EXPECT_EQ(std::memcmp(going.logits().data(), fresh.logits().data(), fresh.logits().size_bytes()), 0)
        << to;
    // And on, with something else.
    ASSERT_OK(going.append(7));
    ASSERT_OK(fresh.append(7));
    EXPECT_EQ(std::memcmp(going.logits().data(), fresh.logits().data(), fresh.logits().size_bytes()), 0)
        << to;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Rewinds, ::testing::ValuesIn(testing::kFamilies),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace forebay
