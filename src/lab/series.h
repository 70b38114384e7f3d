/// What a run writes while it goes: metrics.jsonl, one object per step.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/storage.h"

namespace forebay::lab {

/// What was not measured.
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One run's numbers by step. A step that was written twice (a run that went on from an earlier checkpoint)
/// counts as written last. null is NaN; what is no number is left out.
class Series {
 public:
  /// One line. False when it is no object with a whole "step".
  bool add_line(std::string_view line);

  const std::map<int64_t, std::map<std::string, double>>& rows() const { return rows_; }
  bool empty() const { return rows_.empty(); }
  int64_t last_step() const { return rows_.empty() ? 0 : rows_.rbegin()->first; }

  struct Points {
    std::vector<double> step, value;
  };
  /// Where it was measured, within [first, last].
  Points points(std::string_view metric, int64_t first = 0, int64_t last = INT64_MAX) const;

 private:
  std::map<int64_t, std::map<std::string, double>> rows_;
};

/// Confined. Follows a file that grows.
class SeriesReader {
 public:
  SeriesReader(Storage& storage, Path path) : storage_(storage), path_(std::move(path)) {}
  /// Reads the lines that were finished since the last call; how many were steps. No file is no line yet. A
  /// file that became shorter is read from its start.
  Result<int64_t> poll();
  const Series& series() const { return series_; }

 private:
  Storage& storage_;
  Path path_;
  uint64_t at_ = 0;
  std::string partial_;
  Series series_;
};

/// All of it, now.
Result<Series> read_series(Storage& storage, const Path& path);

}  // namespace forebay::lab
