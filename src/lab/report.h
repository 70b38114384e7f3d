/// What a program's records and metrics say, for people: tables, figures, the ranking.
#pragma once

#include <string>
#include <vector>

#include "core/storage.h"
#include "lab/ranking.h"
#include "lab/records.h"

namespace forebay::lab {

struct CellReport {
  std::string name, parent, role;
  std::string variable;  // "wire.codec: "dense" -> "prf"", empty for a root
  std::string registration;
  std::string outcome;  // "complete", "killed", "failed", "budget", "interrupted", "not run"
  std::string reason;   // of a kill, with its detail
  double device_s = 0;
  std::string log_end;  // of a failed one: the last line it wrote
  Series series;

  // Over the last fifth of its steps; NaN when not measured.
  double reward = 0, accuracy = 0, dense_kl = 0, view_kl = 0, gap = 0;
  double inflation = 0;      // median of view KL over dense KL at steps that have both
  double amplification = 0;  // G: median over the last fifth of view KL over the control's at the same step
  double wire_fwd = 0, wire_bwd = 0;
  double step_s = 0;  // median
};

struct Report {
  std::string name, control;
  std::vector<CellReport> cells;
  std::vector<Json> verdicts;  // the newest per cell and gate
  std::vector<Json> corrections;
  std::vector<RankedArm> ranking;
  std::string objective;
  int64_t horizon = 0;
  double device_s = 0, budget_s = 0;
};

/// Errors: kNotFound when the directory has no records; kCorrupt; kInvalidArgument for an objective that may
/// not rank.
Result<Report> make_report(Storage& storage, const Path& directory, std::string_view objective);

std::string as_markdown(const Report& report);
Json as_json(const Report& report);

/// One PNG per metric that some cell measured, NAME.png in `directory`; their paths. Errors: those of
/// draw_png.
Result<std::vector<Path>> draw_figures(Storage& storage, const Report& report, const Path& directory);
/// The gnuplot script of one, empty when nobody measured the metric.
std::string figure_script(const Report& report, std::string_view metric, std::string_view title,
                          const Path& output);

}  // namespace forebay::lab
