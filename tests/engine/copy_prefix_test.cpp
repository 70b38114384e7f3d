// What one session has read, copied into another: as if that one had read it, and nobody notices.
#include "engine/copy_prefix.h"

#include <cstring>

#include <gtest/gtest.h>

#include "engine/session_impl.h"
#include "support/result_matchers.h"
#include "test_models.h"

namespace forebay {
namespace {

using Ids = std::vector<int32_t>;

using testing::some_ids;

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::vector<float> logits_of(const Session& session) {
  return {session.logits().begin(), session.logits().end()};
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class CopyPrefix : public ::testing::TestWithParam<std::string> {
 protected:
  CopyPrefix() {
    EngineOptions options;
    options.model = testing::converted_vectors(GetParam()).string();
    options.context = 512;
    options.threads = 2;
    options.kv = std::nullopt;
    engine_.emplace(Engine::open(options).value());
  }
  Session session() { return engine_->new_session().value(); }
  std::vector<float> fresh(const Ids& prompt) {
    Session s = session();
    EXPECT_OK(s.sync(prompt));
    return logits_of(s);
  }
  /// Copies, reads the rest, and compares with reading it all.
  void expect_copied(Session& to, const Session& from, const Ids& prompt, int64_t n_copied) {
    EXPECT_EQ(copy_prefix(to, from, prompt), n_copied);
    const Result<SyncReport> report = to.sync(prompt);
    ASSERT_OK(report);
    EXPECT_EQ(report->n_reused, n_copied) << report->why;
    EXPECT_TRUE(same_bits(logits_of(to), fresh(prompt)));
  }

  std::optional<Engine> engine_;
};

TEST_P(CopyPrefix, OfAStateThatThePromptExtends) {
  for (int64_t n : {17, 63, 64, 65, 66, 67, 200}) {
    const Ids a = some_ids(n);
    Session from = session(), to = session(), whole = session();
    ASSERT_OK(from.sync(a));
    expect_copied(to, from, a + some_ids(9, 1), n);
    expect_copied(whole, from, a, n);
    // The other one goes on, and back.
    ASSERT_OK(from.sync(a + some_ids(5, 2)));
    EXPECT_TRUE(same_bits(logits_of(from), fresh(a + some_ids(5, 2))));
    ASSERT_OK(to.sync(a + some_ids(7, 3)));
    EXPECT_TRUE(same_bits(logits_of(to), fresh(a + some_ids(7, 3))));
  }
}

TEST_P(CopyPrefix, OfAPlaceBehindTheState) {
  const Ids a = some_ids(130);
  Session from = session();
  ASSERT_OK(from.sync(a));
  for (int32_t token : {5, 6, 7, 8, 9}) ASSERT_OK(from.append(token));
  Session to = session();
  // Over something else that it had.
  ASSERT_OK(to.sync(some_ids(90, 4)));
  expect_copied(to, from, a + some_ids(20, 1), 130);
  Session same = session();
  const bool keeps_logits = from.impl().state.is_recurrent();
  expect_copied(same, from, a, keeps_logits ? 130 : 129);
  for (int32_t token : {10, 11}) ASSERT_OK(from.append(token));
  EXPECT_TRUE(same_bits(logits_of(from), fresh(a + Ids{5, 6, 7, 8, 9, 10, 11})));
}

TEST_P(CopyPrefix, OfNothingThatIsNotThereOrNotWorthIt) {
  const Ids a = some_ids(100);
  Session from = session(), to = session();
  EXPECT_EQ(copy_prefix(to, from, a), 0) << "an empty one";
  ASSERT_OK(from.sync(a));
  EXPECT_EQ(copy_prefix(to, from, some_ids(60, 7)), 0) << "another text";
  ASSERT_OK(to.sync(Ids(a.begin(), a.begin() + 90)));
  EXPECT_EQ(copy_prefix(to, from, a + some_ids(4, 1)), 0) << "ten tokens more than it has";
  EXPECT_TRUE(same_bits(logits_of(to), fresh(Ids(a.begin(), a.begin() + 90))));
  // The middle of a recurrent state is nowhere.
  if (!from.impl().state.is_recurrent()) return;
  Session other = session();
  EXPECT_EQ(copy_prefix(other, from, Ids(a.begin(), a.begin() + 70) + some_ids(20, 3)), 0);
}

INSTANTIATE_TEST_SUITE_P(Families, CopyPrefix, ::testing::ValuesIn(testing::kFamilies),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace forebay
