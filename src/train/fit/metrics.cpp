#include "train/fit/metrics.h"

#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/gnuplot.h"

namespace forebay::train {

Result<MetricsLog> MetricsLog::open(Storage& storage, const Path& path) {
  bool is_torn = false;  // a line that a crash cut short: what follows must not become a part of it
  if (storage.exists(path)) {
    const std::unique_ptr<ReadableFile> before = TRY(storage.open(path));
    std::byte last{'\n'};
    if (before->size() > 0) TRY(before->read_at(before->size() - 1, {&last, 1}));
    is_torn = last != std::byte{'\n'};
  }
  std::unique_ptr<WritableFile> file = TRY(storage.open_to_append(path));
  if (is_torn) TRY(file->append(std::as_bytes(std::span("\n", 1))));
  return MetricsLog(std::move(file));
}

Result<void> MetricsLog::write(const MetricsRow& row) {
  nlohmann::ordered_json json;
  for (const auto& [name, text] : row.texts) json[name] = text;
  for (const auto& [name, value] : row.numbers) {
    if (std::isfinite(value) && value == std::floor(value) && std::abs(value) < 1e15)
      json[name] = static_cast<int64_t>(value);
    else
      json[name] = value;  // null when not finite
  }
  const std::string line = json.dump() + "\n";
  TRY(file_->append(std::as_bytes(std::span(line))));
  return file_->sync();
}

std::vector<std::pair<double, double>> read_curve(std::string_view log, std::string_view name) {
  std::map<double, double> points;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const auto json = nlohmann::json::parse(log.substr(begin, end - begin), nullptr, false);
    if (json.is_object() && json.contains("step") && json.contains(name) && json[name].is_number())
      points[json["step"].get<double>()] = json[name].get<double>();
    begin = end + 1;
  }
  return {points.begin(), points.end()};
}

Result<void> draw_curves(Storage& storage, const Path& log, const Path& png,
                         std::span<const std::pair<std::string, std::string>> names_and_titles) {
  const std::string text = TRY(read_text(storage, log));
  std::string blocks, plots;
  std::vector<double> steps, values;
  for (const auto& [name, title] : names_and_titles) {
    const auto points = read_curve(text, name);
    if (points.empty()) continue;
    const std::string block = fmt::format("$curve{}", plots.size());
    blocks += block + " << EOD\n";
    for (const auto& [step, value] : points) {
      blocks += fmt::format("{} {}\n", step, value);
      steps.push_back(step);
      values.push_back(value);
    }
    blocks += "EOD\n";
    // One point makes no line.
    plots += fmt::format("{}{} using 1:2 with {} linewidth 2 title {}", plots.empty() ? "" : ", ", block,
                         points.size() > 1 ? "lines" : "points pointtype 7", gnuplot_quoted(title));
  }
  if (plots.empty()) return {};
  return draw_png(storage, png, [&](const Path& output) {
    return gnuplot_png(output) + gnuplot_range("x", steps) + gnuplot_range("y", values) + blocks +
           "set grid\nset xlabel 'step'\nset ylabel 'nats per token'\nset key top right\nplot " + plots +
           "\n";
  });
}

}  // namespace forebay::train
