#include "replay/plot.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/gnuplot.h"

namespace forebay {
namespace {

std::string series_name(const ReplayConfig& config, bool with_half_life) {
  std::string name(name_of(config.policy));
  if (with_half_life) name += fmt::format(" {:g}", config.half_life);
  if (config.bias.lambda > 0) name += fmt::format(", bias {:g}", config.bias.lambda);
  if (config.prompt_bias.lambda > 0) name += fmt::format(", prompts {:g}", config.prompt_bias.lambda);
  if (config.shelf_bytes > 0) name += ", reading ahead";
  return name;
}

/// Where it is in the list, at whose end it is put if it is new.
template <typename T>
size_t index_in(std::vector<T>& list, const T& item) {
  const auto at = std::find(list.begin(), list.end(), item);
  const auto index = static_cast<size_t>(at - list.begin());
  if (at == list.end()) list.push_back(item);
  return index;
}

}  // namespace

std::string plot_script(const RouteLog& log, const std::vector<ReplayRow>& rows, const Path& output) {
  const auto has_half_lives = [&rows](const ReplayConfig& config) {
    return std::any_of(rows.begin(), rows.end(), [&](const ReplayRow& other) {
      return other.result.config.policy == config.policy && other.result.config.half_life != config.half_life;
    });
  };
  // A colour per policy and half-life, a point shape per bias; MIN is black.
  struct Series {
    std::string name;
    size_t colour, shape;
    std::map<double, double> misses;  // per token, by size in percent
  };
  std::vector<Series> all;
  std::vector<std::string> colours;
  std::vector<float> shapes;
  for (const ReplayRow& row : rows) {
    ReplayConfig config = row.result.config;
    const std::string name = series_name(config, has_half_lives(config));
    auto series = std::find_if(all.begin(), all.end(), [&](const Series& s) { return s.name == name; });
    if (series == all.end()) {
      const size_t shape = index_in(shapes, config.bias.lambda);
      config.bias.lambda = 0;
      const size_t colour = index_in(colours, series_name(config, has_half_lives(config)));
      series = all.insert(all.end(), {name, colour, shape, {}});
    }
    const double percent =
        100 * static_cast<double>(config.budget_bytes) / static_cast<double>(log.total_slot_bytes());
    series->misses[percent] = row.misses_per_token();
  }
  std::string script = gnuplot_png(output);
  script += "set title " +
            gnuplot_quoted("Expert cache: " + (log.header.model.empty() ? "trace" : log.header.model)) +
            " noenhanced\n";
  script += "set xlabel 'slots, % of all experts'\nset ylabel 'misses per token'\n";
  std::vector<double> sizes, misses = {0};
  for (const Series& s : all)
    for (const auto& [percent, per_token] : s.misses) {
      sizes.push_back(percent);
      misses.push_back(per_token);
    }
  script += "set grid\nset yrange [0:*]\nset key outside right noenhanced\n";
  script += gnuplot_range("x", sizes) + gnuplot_range("y", misses);
  for (size_t i = 0; i < all.size(); ++i) {
    script += fmt::format("$s{} << EOD\n", i);
    for (const auto& [percent, misses] : all[i].misses)
      script += fmt::format("{:.6g} {:.6g}\n", percent, misses);
    script += "EOD\n";
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string colour =
        all[i].name == name_of(std::nullopt) ? "rgb 'black'" : std::to_string(all[i].colour + 1);
    script += fmt::format("{} $s{} using 1:2 with linespoints linewidth 2 linecolor {} pointtype {} title {}",
                          i == 0 ? "plot" : ",", i, colour, all[i].shape + 1, gnuplot_quoted(all[i].name));
  }
  return script + "\n";
}

Result<void> plot_misses(Storage& storage, const RouteLog& log, const std::vector<ReplayRow>& rows,
                         const Path& path) {
  return draw_png(storage, path, [&](const Path& output) { return plot_script(log, rows, output); });
}

}  // namespace forebay
