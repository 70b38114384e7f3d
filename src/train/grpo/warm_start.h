/// Cross-entropy on a task's own answers, until a model answers some of them by itself.
#pragma once

#include <functional>
#include <stop_token>

#include "forebay/result.h"

#include "train/grpo/sampler.h"
#include "train/grpo/settings.h"
#include "train/nets/net.h"
#include "train/tasks/task.h"

namespace forebay::train {

/// settings.sft.steps of AdamW at a constant rate, on fresh items; changes `net`. progress(step, loss).
/// Errors: kCancelled; kCorrupt when the loss is not finite.
Result<void> warm_start(Net& net, const Task& task, const Sampler& words, const GrpoSettings& settings,
                        const std::function<void(int64_t, double)>& progress, std::stop_token stop);

}  // namespace forebay::train
