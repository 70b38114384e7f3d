// The report's pictures.
#include <iterator>

#include <fmt/format.h>

#include "core/gnuplot.h"
#include "lab/report.h"

namespace forebay::lab {
namespace {

struct Figure {
  std::string_view metric, title;
};
constexpr Figure kFigures[] = {
    {"reward", "reward"},
    {"val_accuracy", "validation accuracy"},
    {"kl_dense", "KL from the reference, without codec (nats)"},
    {"kl_view", "KL from the reference, through the codec (nats; ranks nothing)"},
    {"gap", "gap between sampler and training view (nats)"},
    {"grad_norm", "gradient norm"},
    {"ess", "effective sample size"},
    {"step_s", "seconds per step"},
};

// gnuplot has eight of its own, and a program more cells.
constexpr std::string_view kColours[] = {"000000", "e6194b", "0082c8", "3cb44b", "f58231", "911eb4",
                                         "46c8c8", "f032e6", "a05a00", "808000", "ff9696", "9b9b9b",
                                         "000080", "b4dc14", "800000", "c896ff"};

}  // namespace

std::string figure_script(const Report& report, std::string_view metric, std::string_view title,
                          const Path& output) {
  std::string data, plots;
  std::vector<double> steps, values;
  int n = 0;
  for (const CellReport& cell : report.cells) {
    const Series::Points points = cell.series.points(metric);
    if (points.value.empty()) continue;
    data += fmt::format("$s{} << EOD\n", n);
    steps.insert(steps.end(), points.step.begin(), points.step.end());
    values.insert(values.end(), points.value.begin(), points.value.end());
    for (size_t i = 0; i < points.value.size(); ++i)
      data += fmt::format("{:.0f} {:.8g}\n", points.step[i], points.value[i]);
    data += "EOD\n";
    // One point makes no line.
    plots += fmt::format("{} $s{} using 1:2 with {} linecolor rgb '#{}' linewidth 2 title {}",
                         n == 0 ? "plot" : ",", n, points.value.size() > 1 ? "lines" : "points pointtype 7",
                         kColours[static_cast<size_t>(n) % std::size(kColours)], gnuplot_quoted(cell.name));
    ++n;
  }
  if (n == 0) return "";
  return gnuplot_png(output) + "set title " + gnuplot_quoted(report.name + ": " + std::string(title)) +
         " noenhanced\nset xlabel 'step'\nset grid\nset key outside right noenhanced\n" +
         gnuplot_range("x", steps) + gnuplot_range("y", values) + data + plots + "\n";
}

Result<std::vector<Path>> draw_figures(Storage& storage, const Report& report, const Path& directory) {
  std::vector<Path> drawn;
  for (const Figure& figure : kFigures) {
    if (figure_script(report, figure.metric, figure.title, {}).empty()) continue;
    const Path path = directory / (std::string(figure.metric) + ".png");
    TRY(draw_png(storage, path, [&](const Path& output) {
      return figure_script(report, figure.metric, figure.title, output);
    }));
    drawn.push_back(path);
  }
  return drawn;
}

}  // namespace forebay::lab
