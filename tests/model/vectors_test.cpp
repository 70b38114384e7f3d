// Six tiny random models against the logits of the published implementations.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test_models.h"

namespace forebay {
namespace {

using testing::Expected;
using testing::LoadedModel;

class Vectors : public ::testing::TestWithParam<std::tuple<std::string, Isa>> {};

TEST_P(Vectors, LogitsEqualTheReference) {
  const auto [family, isa] = GetParam();
  if (isa != Isa::kReference && isa != best_isa()) GTEST_SKIP() << "not on this machine";
  const Expected expected = testing::expected_of(family);
  const std::vector<int32_t> ids = expected.ints("ids");
  LoadedModel m(testing::converted_vectors(family), 2, isa);
  const int64_t V = m.model->config().n_vocab;
  const auto T = static_cast<int64_t>(ids.size());
  const std::vector<float> logits = m.logits(ids);

  const std::vector<float> last = expected.floats("logits");  // of the last 16 positions
  float largest = 0, worst = 0;
  for (size_t i = 0; i < last.size(); ++i) {
    largest = std::max(largest, std::fabs(last[i]));
    worst = std::max(worst, std::fabs(last[i] - logits[logits.size() - last.size() + i]));
  }
  EXPECT_LE(worst, 2e-4f * largest);
  std::printf("%s: max |difference| %.2e of the largest logit\n", family.c_str(), worst / largest);

  const std::vector<int32_t> best = expected.ints("argmax");
  const std::vector<float> lse = expected.floats("lse"), target = expected.floats("target_logprob");
  for (int64_t t = 0; t < T; ++t) {
    const float* row = logits.data() + t * V;
    std::vector<float> sorted(row, row + V);
    std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
    const auto top = static_cast<int32_t>(std::max_element(row, row + V) - row);
    if (top != best[t] && sorted[0] - sorted[1] < 1e-3f) {
      std::printf("%s: argmax at %d is a near tie (gap %.1e)\n", family.c_str(), static_cast<int>(t),
                  sorted[0] - sorted[1]);
    } else {
      EXPECT_EQ(top, best[t]) << "position " << t;
    }
    double sum = 0;
    for (int64_t i = 0; i < V; ++i) sum += std::exp(static_cast<double>(row[i]) - row[top]);
    EXPECT_NEAR(row[top] + std::log(sum), lse[t], 1e-3) << "position " << t;
    if (t + 1 == T) continue;
    EXPECT_NEAR(row[ids[t + 1]] - row[top] - std::log(sum), target[t], 1e-3) << "position " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Vectors,
                         ::testing::Combine(::testing::ValuesIn(testing::kFamilies),
                                            ::testing::Values(Isa::kReference, Isa::kAvx2, Isa::kNeon)),
                         [](const auto& i) {
                           return fmt::format("{}_{}", std::get<0>(i.param), name_of(std::get<1>(i.param)));
                         });

}  // namespace
}  // namespace forebay
