#include "eval/route_curve.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay {
namespace {

RouteCurve some_curve() {
  RouteCurve curve;
  curve.model = 0xfedcba9876543210;
  curve.model_name = "some \"model\"";
  curve.budget_bytes = 1 << 20;
  curve.texts = {"chat", "ops"};
  curve.points = {{.route_bias = 0, .misses_per_token = 20},
                  {.route_bias = 0.5, .mean_kld = 0.01, .ci_high = 0.02, .misses_per_token = 15},
                  {.route_bias = 1, .mean_kld = 0.02, .ci_high = 0.04, .misses_per_token = 12}};
  return curve;
}

TEST(RouteCurve, TheLargestBiasBelowTheLimit) {
  const RouteCurve curve = some_curve();
  EXPECT_EQ(bias_within(curve, 1), 1.0f);
  EXPECT_EQ(bias_within(curve, 0.03), 0.5f);
  EXPECT_EQ(bias_within(curve, 0.015), 0.0f) << "the mean is below, the interval's end is not";
  EXPECT_EQ(bias_within(curve, 0), 0.0f);
  RouteCurve dips = curve;
  dips.points[2].ci_high = 0.005;
  EXPECT_EQ(bias_within(dips, 0.01), 0.0f) << "a dear bias before it: the cheap one is luck";
}

TEST(RouteCurve, ReadsWhatItWrote) {
  const Result<RouteCurve> read = parse_route_curve(encode_route_curve(some_curve()));
  ASSERT_OK(read);
  EXPECT_EQ(encode_route_curve(*read), encode_route_curve(some_curve()));
  EXPECT_EQ(read->model, some_curve().model);
}

TEST(RouteCurve, NamesWhatIsWrong) {
  const std::string good = encode_route_curve(some_curve());
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_TRUE(fails_with(parse_route_curve("{"), Code::kCorrupt, "JSON"));
  EXPECT_TRUE(fails_with(parse_route_curve("[]"), Code::kCorrupt, "JSON"));
  EXPECT_TRUE(fails_with(parse_route_curve("{}"), Code::kCorrupt, "'format'", "forebay-route-curve-1"));
  EXPECT_TRUE(fails_with(parse_route_curve(changed("fedc", "xyz!")), Code::kCorrupt, "'model'"));
  EXPECT_TRUE(fails_with(parse_route_curve(changed("0.02", "-1.5")), Code::kCorrupt, "point 1", "'ci_high'"));
  EXPECT_TRUE(fails_with(parse_route_curve(changed("\"p99_kld\"", "\"p98\"")), Code::kCorrupt, "point 0",
                         "'p99_kld'"));
  EXPECT_TRUE(fails_with(parse_route_curve(changed("\"points\": [", "\"points\": 5, \"x\": [")),
                         Code::kCorrupt, "'points'"));
}

}  // namespace
}  // namespace forebay
