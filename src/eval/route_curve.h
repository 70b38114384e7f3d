/// What preferring experts in memory saves and costs, measured: bias after bias, in a file that --max-kld
/// reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/storage.h"

namespace forebay {

struct RouteCurve {
  struct Point {
    float route_bias = 0;
    double mean_kld = 0;  // nats per token, over all texts
    double ci_high = 0;   // upper end of its 95 % interval
    double p99_kld = 0;
    double misses_per_token = 0;
    double bytes_per_token = 0;  // read
  };
  uint64_t model = 0;  // fingerprint
  std::string model_name;
  uint64_t budget_bytes = 0;
  std::vector<std::string> texts;
  std::vector<Point> points;  // rising bias
};

/// The largest measured bias such that its divergence and that of every smaller one is below: the upper end
/// of the interval, not the mean. 0 when there is none. Between two points nothing is assumed.
float bias_within(const RouteCurve& curve, double max_kld);

std::string encode_route_curve(const RouteCurve& curve);  // JSON
/// Errors: kCorrupt naming the member that is missing or wrong.
Result<RouteCurve> parse_route_curve(std::string_view json);

/// Misses per token against divergence. Errors: those of draw_png.
Result<void> plot_route_curve(Storage& storage, const RouteCurve& curve, const Path& path);

}  // namespace forebay
