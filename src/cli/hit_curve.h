/// Expected hits from what a model's router really did.
#pragma once

#include <span>

#include "core/thread_pool.h"
#include "plan/model_footprint.h"
#include "plan/speed.h"
#include "replay/route_log.h"

namespace forebay::cli {

/// The hits that a cache of the default policy would have had over a recorded trace, at `share` of the
/// experts and around it; answers count where the trace has any, else prompts. Errors: kInvalidArgument for a
/// trace of a model with other experts, or one that is too short.
Result<HitCurve> measured_hit_curve(const RouteLog& log, const ModelFootprint& model, double share,
                                    ThreadPool& pool);

}  // namespace forebay::cli
