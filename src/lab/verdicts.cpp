#include "lab/verdicts.h"

#include <cmath>
#include <optional>

namespace forebay::lab {
namespace {

/// JSON has no infinity.
Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

const Json* verdict_in(const Records& records, const std::string& cell, std::string_view gate) {
  const Json* found = nullptr;
  for (const Json& record : records.all())
    if (record["kind"] == "verdict" && record["cell"] == cell && record["gate"] == gate) found = &record;
  return found;
}

}  // namespace

Result<void> record_verdicts(Storage& storage, const LabProgram& program, const Path& directory,
                             Records& records) {
  std::optional<Series> control;
  if (!program.control.empty())
    control = TRY(read_series(storage, directory / "cells" / program.control / "metrics.jsonl"));
  for (const Cell& cell : program.cells) {
    if (records.last("ended", "cell", cell.name) == nullptr) continue;
    const Series series = TRY(read_series(storage, directory / "cells" / cell.name / "metrics.jsonl"));
    for (const Gate& gate : cell.gates) {
      const Verdict verdict = judge(gate, series, control ? &*control : nullptr);
      Json body = {{"cell", cell.name},
                   {"gate", gate.name},
                   {"outcome", name_of(verdict.outcome)},
                   {"demoted", gate.demoted},
                   {"value", number_or_null(verdict.estimate.value)},
                   {"error", number_or_null(verdict.estimate.error)},
                   {"points", verdict.estimate.n},
                   {"minimum_detectable", number_or_null(verdict.minimum_detectable)},
                   {"bar", gate.bar},
                   {"note", verdict.note}};
      if (const Json* before = verdict_in(records, cell.name, gate.name)) {
        bool same = true;
        for (const auto& [key, value] : body.items()) same = same && before->value(key, Json()) == value;
        if (same) continue;
        const Json of = (*before)["n"];
        TRY(records.append("correction", {{"cell", cell.name}, {"of", of}, {"note", "judged anew below"}}));
      }
      TRY(records.append("verdict", body));
    }
  }
  return {};
}

}  // namespace forebay::lab
