/// Cross-entropy on a task's own answers, until a model answers some of them by itself.
#pragma once

#include <functional>
#include <stop_token>

#include "forebay/result.h"

#include "train/grpo/drawer.h"
#include "train/grpo/settings.h"
#include "train/grpo/team.h"
#include "train/grpo/views.h"
#include "train/nets/net.h"

namespace forebay::train {

/// settings.sft.steps of AdamW at a constant rate, on fresh items of the leader's `drawer` (null elsewhere);
/// changes `net`. progress(step, loss). Collective. Errors: kCancelled; kCorrupt when the loss is not finite.
Result<void> warm_start(Net& net, Views& views, Drawer* drawer, Team& team, const GrpoSettings& settings,
                        const std::function<void(int64_t, double)>& progress, std::stop_token stop);

}  // namespace forebay::train
