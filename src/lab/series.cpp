#include "lab/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace forebay::lab {

bool Series::add_line(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  const auto step = json.find("step");
  if (step == json.end() || !step->is_number_integer()) return false;
  auto& row = rows_[step->get<int64_t>()];
  row.clear();
  for (const auto& [key, value] : json.items()) {
    if (value.is_number()) row[key] = value.get<double>();
    if (value.is_boolean()) row[key] = value.get<bool>() ? 1 : 0;
    if (value.is_null()) row[key] = std::numeric_limits<double>::quiet_NaN();
  }
  return true;
}

Series::Points Series::points(std::string_view metric, int64_t first, int64_t last) const {
  Points out;
  for (auto row = rows_.lower_bound(first); row != rows_.end() && row->first <= last; ++row) {
    const auto found = row->second.find(std::string(metric));
    if (found == row->second.end() || std::isnan(found->second)) continue;
    out.step.push_back(static_cast<double>(row->first));
    out.value.push_back(found->second);
  }
  return out;
}

Result<int64_t> SeriesReader::poll() {
  if (!storage_.exists(path_)) return int64_t{0};
  const std::unique_ptr<ReadableFile> file = TRY(storage_.open(path_));
  if (file->size() < at_) {
    at_ = 0;
    partial_.clear();
    series_ = {};
  }
  int64_t n_steps = 0;
  while (at_ < file->size()) {
    std::string text(std::min<uint64_t>(file->size() - at_, 1 << 20), '\0');
    TRY(file->read_at(at_, std::as_writable_bytes(std::span(text.data(), text.size()))));
    at_ += text.size();
    partial_ += text;
    size_t begin = 0;
    for (size_t end; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1)
      n_steps += series_.add_line(std::string_view(partial_).substr(begin, end - begin)) ? 1 : 0;
    partial_.erase(0, begin);
  }
  return n_steps;
}

Result<Series> read_series(Storage& storage, const Path& path) {
  SeriesReader reader(storage, path);
  TRY(reader.poll());
  return reader.series();
}

}  // namespace forebay::lab
