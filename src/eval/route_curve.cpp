#include "eval/route_curve.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/gnuplot.h"

namespace forebay {
namespace {

constexpr std::string_view kFormat = "forebay-route-curve-1";

Error corrupt(std::string_view what) {
  return Error{Code::kCorrupt, fmt::format("route curve: {}", what)};
}

}  // namespace

float bias_within(const RouteCurve& curve, double max_kld) {
  float best = 0;
  for (const RouteCurve::Point& point : curve.points) {
    if (point.ci_high > max_kld) break;
    best = point.route_bias;
  }
  return best;
}

std::string encode_route_curve(const RouteCurve& curve) {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["model"] = fmt::format("{:016x}", curve.model);
  json["model_name"] = curve.model_name;
  json["budget_bytes"] = curve.budget_bytes;
  json["texts"] = curve.texts;
  for (const RouteCurve::Point& p : curve.points)
    json["points"].push_back({{"route_bias", p.route_bias},
                              {"mean_kld", p.mean_kld},
                              {"ci_high", p.ci_high},
                              {"p99_kld", p.p99_kld},
                              {"misses_per_token", p.misses_per_token},
                              {"bytes_per_token", p.bytes_per_token}});
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<RouteCurve> parse_route_curve(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return corrupt("not a JSON object");
  if (const auto format = json.find("format"); format == json.end() || *format != kFormat)
    return corrupt(fmt::format("'format' is not \"{}\": forebay kld --curve writes such files", kFormat));
  RouteCurve curve;
  const auto model = json.find("model");
  if (model == json.end() || !model->is_string() ||
      std::sscanf(model->get_ref<const std::string&>().c_str(), "%16lx", &curve.model) != 1)
    return corrupt("'model' is not a number of 16 hexadecimal digits");
  if (const auto name = json.find("model_name"); name != json.end() && name->is_string())
    curve.model_name = *name;
  if (const auto budget = json.find("budget_bytes"); budget != json.end() && budget->is_number_unsigned())
    curve.budget_bytes = *budget;
  if (const auto texts = json.find("texts"); texts != json.end() && texts->is_array())
    for (const nlohmann::json& text : *texts)
      if (text.is_string()) curve.texts.push_back(text);
  const auto points = json.find("points");
  if (points == json.end() || !points->is_array() || points->empty())
    return corrupt("'points' is not a list");
  for (const nlohmann::json& entry : *points) {
    RouteCurve::Point point;
    const auto read = [&](const char* key, auto& out) {
      const bool good = entry.is_object() && entry.contains(key) && entry[key].is_number() && entry[key] >= 0;
      if (good) out = entry[key];
      return good;
    };
    for (const auto& [key, out] : {std::pair<const char*, double*>{"mean_kld", &point.mean_kld},
                                   {"ci_high", &point.ci_high},
                                   {"p99_kld", &point.p99_kld},
                                   {"misses_per_token", &point.misses_per_token},
                                   {"bytes_per_token", &point.bytes_per_token}})
      if (!read(key, *out))
        return corrupt(fmt::format("point {}: '{}' is not a number of 0 or more", curve.points.size(), key));
    if (!read("route_bias", point.route_bias))
      return corrupt(fmt::format("point {}: 'route_bias' is not a number of 0 or more", curve.points.size()));
    curve.points.push_back(point);
  }
  std::stable_sort(curve.points.begin(), curve.points.end(),
                   [](const auto& a, const auto& b) { return a.route_bias < b.route_bias; });
  return curve;
}

Result<void> plot_route_curve(Storage& storage, const RouteCurve& curve, const Path& path) {
  return draw_png(storage, path, [&](const Path& output) {
    std::string script = gnuplot_png(output);
    script += "set title " + gnuplot_quoted("Cache-aware routing: " + curve.model_name) + " noenhanced\n";
    script += "set xlabel 'mean KLD, nats per token'\nset ylabel 'misses per token'\n";
    std::vector<double> kld = {0}, misses = {0};
    for (const RouteCurve::Point& p : curve.points) {
      kld.push_back(p.mean_kld);
      misses.push_back(p.misses_per_token);
    }
    script += "set grid\nset yrange [0:*]\nset xrange [0:*]\n";
    script += gnuplot_range("x", kld) + gnuplot_range("y", misses) + "$points << EOD\n";
    for (const RouteCurve::Point& p : curve.points)
      script += fmt::format("{:.6g} {:.6g} {:g}\n", p.mean_kld, p.misses_per_token, p.route_bias);
    return script +
           "EOD\nplot $points using 1:2 with linespoints linewidth 2 notitle, "
           "$points using 1:2:3 with labels offset 1.5,0.7 title 'route bias'\n";
  });
}

}  // namespace forebay
