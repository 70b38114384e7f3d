#include "lab/report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "lab/slope.h"

namespace forebay::lab {
namespace {

std::string text_in(const Json& record, const char* key) {
  const auto at = record.find(key);
  return at != record.end() && at->is_string() ? at->get<std::string>() : std::string();
}
double number_in(const Json& record, const char* key) {
  const auto at = record.find(key);
  return at != record.end() && at->is_number() ? at->get<double>() : 0;
}

double late_mean(const Series& series, const char* metric) {
  const int64_t last = series.last_step();
  const Series::Points points = series.points(metric, last - std::max<int64_t>(1, last / 5) + 1);
  return points.value.empty() ? kNaN : mean_of(points.value).value;
}

/// Median of a over b at the steps that have both.
double median_ratio(const Series::Points& a, const Series::Points& b) {
  std::vector<double> ratios;
  size_t j = 0;
  for (size_t i = 0; i < a.step.size(); ++i) {
    while (j < b.step.size() && b.step[j] < a.step[i]) ++j;
    if (j < b.step.size() && b.step[j] == a.step[i] && b.value[j] > 0)
      ratios.push_back(a.value[i] / b.value[j]);
  }
  return median_of(ratios);
}

void measure(CellReport& cell) {
  const Series& series = cell.series;
  cell.reward = late_mean(series, "reward");
  cell.accuracy = late_mean(series, "val_accuracy");
  cell.dense_kl = late_mean(series, "kl_dense");
  cell.view_kl = late_mean(series, "kl_view");
  cell.gap = late_mean(series, "gap");
  cell.inflation = median_ratio(series.points("kl_view"), series.points("kl_dense"));
  cell.wire_fwd = late_mean(series, "wire_bits_fwd");
  cell.wire_bwd = late_mean(series, "wire_bits_bwd");
  cell.step_s = median_of(series.points("step_s").value);
}

Result<std::string> last_line_of(Storage& storage, const Path& log) {
  if (!storage.exists(log)) return std::string();
  std::string text = TRY(read_text(storage, log));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

CellReport& cell_of(Report& report, const std::string& name) {
  for (CellReport& cell : report.cells)
    if (cell.name == name) return cell;
  CellReport cell;
  cell.name = name;
  cell.outcome = "not run";
  return report.cells.emplace_back(std::move(cell));
}

void take(Report& report, RankingRules& rules, const Json& record) {
  const std::string kind = text_in(record, "kind");
  if (kind == "program") {
    report.name = text_in(record, "name");
    report.control = text_in(record, "control");
    report.budget_s = number_in(record, "budget_s");
    rules.wire_bits = number_in(record, "wire_bits");
    rules.horizon = static_cast<int64_t>(number_in(record, "horizon"));
  }
  if (kind == "correction") report.corrections.push_back(record);
  if (!record.contains("cell")) return;
  CellReport& cell = cell_of(report, text_in(record, "cell"));
  if (kind == "registered") {
    cell.parent = text_in(record, "parent");
    cell.role = text_in(record, "role");
    cell.registration = text_in(record, "registration");
    if (const auto variable = record.find("variable"); variable != record.end() && variable->is_object())
      cell.variable = fmt::format("{}: {} -> {}", text_in(*variable, "key"), text_in(*variable, "from"),
                                  text_in(*variable, "to"));
  }
  if (kind == "started") cell.outcome = "interrupted";  // until its end is found
  if (kind == "cost") {
    cell.device_s += number_in(record, "device_s");
    report.device_s += number_in(record, "device_s");
  }
  if (kind == "ended") {
    cell.outcome = text_in(record, "outcome");
    cell.reason = text_in(record, "reason");
    if (!cell.reason.empty()) cell.reason += ": " + text_in(record, "detail");
  }
  if (kind == "verdict") {
    std::erase_if(report.verdicts, [&](const Json& old) {
      return text_in(old, "cell") == cell.name && text_in(old, "gate") == text_in(record, "gate");
    });
    report.verdicts.push_back(record);
  }
}

}  // namespace

Result<Report> make_report(Storage& storage, const Path& directory, std::string_view objective) {
  const std::optional<DenseMetric> metric = DenseMetric::named(objective);
  if (!metric)
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}' ranks nothing: only reward, val_accuracy, kl_dense, gap, gap_dense and "
                             "grad_norm do",
                             objective)};
  const Path path = directory / "records.jsonl";
  if (!storage.exists(path))
    return Error{Code::kNotFound, fmt::format("{}: no records of a program here", path.string())};
  const Records records = TRY(Records::open(storage, path));
  Report report;
  report.objective = objective;
  RankingRules rules;
  for (const Json& record : records.all()) take(report, rules, record);
  for (CellReport& cell : report.cells) {
    const Path folder = directory / "cells" / cell.name;
    cell.series = TRY(read_series(storage, folder / "metrics.jsonl"));
    if (cell.outcome == "failed") cell.log_end = TRY(last_line_of(storage, folder / "log.txt"));
    measure(cell);
  }
  const auto control = std::find_if(report.cells.begin(), report.cells.end(),
                                    [&](const CellReport& cell) { return cell.name == report.control; });
  const Series* control_series = control == report.cells.end() ? nullptr : &control->series;
  std::vector<Arm> arms;
  for (CellReport& cell : report.cells) {
    if (rules.horizon == 0 && control_series == nullptr)
      report.horizon = std::max(report.horizon, cell.series.last_step());
    if (control_series != nullptr) {
      const int64_t last = cell.series.last_step();
      const int64_t from = last - std::max<int64_t>(1, last / 5) + 1;
      cell.amplification =
          median_ratio(cell.series.points("kl_view", from), control_series->points("kl_view"));
    }
    const bool collapsed = cell.outcome == "killed" || cell.outcome == "failed";
    arms.push_back({cell.name, cell.role == "reference", collapsed, &cell.series});
  }
  if (rules.horizon > 0) report.horizon = rules.horizon;
  if (report.horizon == 0 && control_series != nullptr) report.horizon = control_series->last_step();
  rules.horizon = report.horizon;
  report.ranking = rank(arms, control_series, rules, *metric);
  return report;
}

Json as_json(const Report& report) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json cells = Json::array(), ranking = Json::array();
  for (const CellReport& cell : report.cells)
    cells.push_back({{"cell", cell.name},
                     {"parent", cell.parent},
                     {"role", cell.role},
                     {"variable", cell.variable},
                     {"registration", cell.registration},
                     {"outcome", cell.outcome},
                     {"reason", cell.reason},
                     {"steps", cell.series.last_step()},
                     {"device_s", cell.device_s},
                     {"reward", number(cell.reward)},
                     {"val_accuracy", number(cell.accuracy)},
                     {"kl_dense", number(cell.dense_kl)},
                     {"kl_view", number(cell.view_kl)},
                     {"gap", number(cell.gap)},
                     {"inflation", number(cell.inflation)},
                     {"amplification", number(cell.amplification)},
                     {"wire_bits_fwd", number(cell.wire_fwd)},
                     {"wire_bits_bwd", number(cell.wire_bwd)},
                     {"step_s", number(cell.step_s)}});
  for (const RankedArm& arm : report.ranking)
    ranking.push_back({{"cell", arm.name},
                       {"standing", name_of(arm.standing)},
                       {"why", arm.why},
                       {"steps", arm.steps},
                       {"gap_drift", number(arm.gap_drift)},
                       {"gradient_drift", number(arm.gradient_drift)},
                       {"gradient_max", number(arm.gradient_max)},
                       {"kl_dense", number(arm.dense_kl)},
                       {"objective", number(arm.objective)}});
  return {{"program", report.name},
          {"control", report.control},
          {"device_s", report.device_s},
          {"budget_s", report.budget_s},
          {"horizon", report.horizon},
          {"objective", report.objective},
          {"cells", cells},
          {"verdicts", report.verdicts},
          {"ranking", ranking},
          {"corrections", report.corrections}};
}

}  // namespace forebay::lab
