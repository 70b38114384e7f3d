// The monitor's table, JSON and picture.
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/gnuplot.h"
#include "train/monitor/checkpoint_monitor.h"

namespace forebay::train {
namespace {

double degrees(double radians) {
  return radians * 180 / std::numbers::pi;
}
std::string shown(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}
std::string layer_name(int layer) {
  return layer < 0 ? "other" : std::to_string(layer);
}
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace

std::string monitor_table(const CheckpointChange& change) {
  std::string out =
      fmt::format("{:>6} {:>9} {:>12} {:>14} {:>14} {:>18} {:>15}\n", "layer", "matrices", "changed bf16",
                  "spectral shift", "largest angle", "principal overlap", "effective rank");
  for (const LayerChange& layer : change.layers)
    out += fmt::format("{:>6} {:>9} {:>10.2f} % {:>14} {:>14} {:>18} {:>15}\n", layer_name(layer.layer),
                       layer.n_matrices, 100 * layer.changed_bf16, shown(layer.spectral_shift, "{:.3e}"),
                       shown(degrees(layer.angle), "{:.4f} deg"),
                       shown(layer.principal_overlap, "{:.3f} x chance"),
                       shown(100 * layer.effective_rank_share, "{:.1f} %"));
  return out;
}

std::string monitor_json(const CheckpointChange& change) {
  using Json = nlohmann::ordered_json;
  Json matrices = Json::array(), layers = Json::array();
  for (const NamedChange& matrix : change.matrices) {
    const MatrixChange& c = matrix.change;
    matrices.push_back({{"name", matrix.name},
                        {"layer", matrix.layer},
                        {"rows", c.rows},
                        {"columns", c.columns},
                        {"identical", c.identical},
                        {"changed", c.changed},
                        {"changed_bf16", c.changed_bf16},
                        {"update_norm", number(c.update_norm)},
                        {"rank", c.rank},
                        {"spectral_shift", number(c.spectral_shift)},
                        {"angle_left", number(c.angle_left)},
                        {"angle_right", number(c.angle_right)},
                        {"principal_overlap", number(c.principal_overlap)},
                        {"effective_rank", number(c.effective_rank)},
                        {"rank_99", number(c.rank_99)}});
  }
  for (const LayerChange& layer : change.layers)
    layers.push_back({{"layer", layer.layer},
                      {"matrices", layer.n_matrices},
                      {"changed_bf16", layer.changed_bf16},
                      {"spectral_shift", number(layer.spectral_shift)},
                      {"angle", number(layer.angle)},
                      {"principal_overlap", number(layer.principal_overlap)},
                      {"effective_rank_share", number(layer.effective_rank_share)}});
  return Json{{"layers", layers}, {"matrices", matrices}}.dump();
}

std::string monitor_script(const CheckpointChange& change, const Path& output) {
  std::string data = "$layers << EOD\n";
  std::vector<double> layers, angles = {0}, shifts = {0};
  for (const LayerChange& layer : change.layers) {
    if (layer.layer < 0) continue;
    data += fmt::format("{} {} {}\n", layer.layer, shown(degrees(layer.angle), "{:.8g}"),
                        shown(layer.spectral_shift, "{:.8g}"));
    layers.push_back(layer.layer);
    if (std::isfinite(layer.angle)) angles.push_back(degrees(layer.angle));
    if (std::isfinite(layer.spectral_shift)) shifts.push_back(layer.spectral_shift);
  }
  return gnuplot_png(output) +
         "set datafile missing '-'\nset xlabel 'layer'\nset ylabel 'largest principal angle, degrees'\n"
         "set y2label 'spectral shift'\nset ytics nomirror\nset y2tics\nset yrange [0:*]\nset y2range "
         "[0:*]\nset grid\n" +
         gnuplot_range("x", layers) + gnuplot_range("y", angles) + gnuplot_range("y2", shifts) + data +
         "EOD\nplot $layers using 1:2 with linespoints linewidth 2 title 'angle', "
         "$layers using 1:3 axes x1y2 with linespoints linewidth 2 title 'spectral shift'\n";
}

}  // namespace forebay::train
