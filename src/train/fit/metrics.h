/// metrics.jsonl: what happened, step by step, written as it happens and never rewritten.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/storage.h"

namespace forebay::train {

/// One line.
struct MetricsRow {
  std::vector<std::pair<std::string, double>> numbers;
  std::vector<std::pair<std::string, std::string>> texts;

  void add(std::string name, double value) { numbers.emplace_back(std::move(name), value); }
};

/// Confined. A number that is not finite is written as null.
class MetricsLog {
 public:
  /// Goes on behind what is there.
  static Result<MetricsLog> open(Storage& storage, const Path& path);
  /// On the disk when it returns.
  Result<void> write(const MetricsRow& row);

 private:
  explicit MetricsLog(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  std::unique_ptr<WritableFile> file_;
};

/// The pairs (step, NAME) of a log's text, where both are there. After a resume the later row of a step
/// counts. A last line that was cut short is passed over.
std::vector<std::pair<double, double>> read_curve(std::string_view log, std::string_view name);

/// Draws curves over steps, those that have points. Errors: as draw_png().
Result<void> draw_curves(Storage& storage, const Path& log, const Path& png,
                         std::span<const std::pair<std::string, std::string>> names_and_titles);

}  // namespace forebay::train
