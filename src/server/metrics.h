/// What the server did, for programs: Prometheus text and JSON.
#pragma once

#include <string>

#include "server/json_fields.h"
#include "server/scheduler.h"

namespace forebay {

std::string prometheus_text(const SchedulerStatus& status);
Json status_json(const SchedulerStatus& status, const ModelInfo& model,
                 const std::optional<PlanSummary>& plan);
/// Of values in any order; 0 without any.
double quantile(std::vector<double> values, double q);

}  // namespace forebay
