// The report as Markdown.
#include <cmath>

#include <fmt/format.h>

#include "lab/report.h"

namespace forebay::lab {
namespace {

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-";
}
std::string number(const Json& record, const char* key) {
  const auto at = record.find(key);
  return at != record.end() && at->is_number() ? number(at->get<double>()) : "-";
}
std::string text(const Json& record, const char* key) {
  const auto at = record.find(key);
  return at != record.end() && at->is_string() ? at->get<std::string>() : "";
}

std::string cells_table(const Report& report) {
  std::string out =
      "## Cells\n\n| cell | parent | variable | outcome | steps | device s |\n|---|---|---|---|---|---|\n";
  for (const CellReport& cell : report.cells) {
    std::string end = cell.outcome;
    if (!cell.reason.empty()) end += " (" + cell.reason + ")";
    if (!cell.log_end.empty()) end += " (" + cell.log_end + ")";
    out += fmt::format("| {} | {} | {} | {} | {} | {:.0f} |\n", cell.name, cell.parent, cell.variable, end,
                       cell.series.last_step(), cell.device_s);
  }
  return out + fmt::format("\n{:.0f} of {:.0f} device seconds spent.\n", report.device_s, report.budget_s);
}

std::string numbers_table(const Report& report) {
  std::string out =
      "\n## Measured\n\nMeans over the last fifth of each cell's steps; inflation and step time are medians "
      "over "
      "all. G is the view KL over the control's at the same step.\n\n"
      "| cell | reward | val | KL dense | KL view | inflation | G | gap | bits fwd | bits bwd | step s |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const CellReport& cell : report.cells) {
    if (cell.series.last_step() == 0) continue;
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cell.name,
                       number(cell.reward), number(cell.accuracy), number(cell.dense_kl),
                       number(cell.view_kl), number(cell.inflation), number(cell.amplification),
                       number(cell.gap), number(cell.wire_fwd), number(cell.wire_bwd), number(cell.step_s));
  }
  return out;
}

std::string verdicts_table(const Report& report) {
  if (report.verdicts.empty()) return "";
  std::string out =
      "\n## Verdicts\n\n| cell | gate | verdict | value | 95 % | bar | detectable | points | note |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const Json& verdict : report.verdicts) {
    const auto error = verdict.find("error");
    const std::string interval =
        error != verdict.end() && error->is_number() ? "+- " + number(1.96 * error->get<double>()) : "-";
    out +=
        fmt::format("| {} | {}{} | {} | {} | {} | {} | {} | {} | {} |\n", text(verdict, "cell"),
                    text(verdict, "gate"), verdict.value("demoted", false) ? " (demoted)" : "",
                    text(verdict, "outcome"), number(verdict, "value"), interval, number(verdict, "bar"),
                    number(verdict, "minimum_detectable"), number(verdict, "points"), text(verdict, "note"));
  }
  return out;
}

/// Gates that the cell failed, demoted ones aside: a place says nothing against them.
std::string failed_gates(const Report& report, const std::string& cell) {
  std::string out;
  for (const Json& verdict : report.verdicts)
    if (text(verdict, "cell") == cell && text(verdict, "outcome") == "fail" &&
        !verdict.value("demoted", false))
      out += (out.empty() ? "" : ", ") + text(verdict, "gate");
  return out;
}

std::string ranking_table(const Report& report) {
  std::string out = fmt::format(
      "\n## Stability\n\nRanked by gap drift within {} steps; only numbers without codec take part. The "
      "objective "
      "is {}.\n\n| | cell | standing | failed gates | gap drift | gradient drift | gradient max | KL dense | "
      "objective |\n|---|---|---|---|---|---|---|---|---|\n",
      report.horizon, report.objective);
  int place = 0;
  for (const RankedArm& arm : report.ranking)
    out += fmt::format("| {} | {} | {}{} | {} | {} | {} | {} | {} | {} |\n",
                       arm.standing == Standing::kRanked ? std::to_string(++place) : "", arm.name,
                       name_of(arm.standing), arm.why.empty() ? "" : ": " + arm.why,
                       failed_gates(report, arm.name), number(arm.gap_drift), number(arm.gradient_drift),
                       number(arm.gradient_max), number(arm.dense_kl), number(arm.objective));
  return out;
}

}  // namespace

std::string as_markdown(const Report& report) {
  std::string out = fmt::format("# {}\n\n", report.name) + cells_table(report) + numbers_table(report) +
                    verdicts_table(report) + ranking_table(report);
  if (!report.corrections.empty()) {
    out += "\n## Corrections\n\n";
    for (const Json& correction : report.corrections)
      out += fmt::format("- {}: {}, about record {}\n", text(correction, "cell"), text(correction, "note"),
                         number(correction, "of"));
  }
  return out;
}

}  // namespace forebay::lab
