/// What may change between a run and its going on: settings of how long, how fast and how often, and those
/// that have nothing to act on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "recipe/recipe.h"
#include "train/grpo/settings.h"

namespace forebay::train {

/// Resolved settings by key, as Recipe::values() has them.
using ResolvedSettings = std::map<std::string, std::string>;

struct ChangedSetting {
  std::string key, before, now;
};

/// The settings that differ between `before`, of the checkpoint, and `now`: all of them such that what
/// follows is the same to the bit, or differs only in when it is looked at and where it stops. A key that the
/// checkpoint does not have counts as its default. Errors: kInvalidArgument with the key, the old and the new
/// value for one that changes results.
Result<std::vector<ChangedSetting>> check_same_run(const ResolvedSettings& before,
                                                   const ResolvedSettings& now, const std::string& directory);

/// 16 digits over the settings that change results and have something to act on: two runs with the same
/// digits learn the same, and a run keeps its own however often it goes on. `all` has every key.
std::string results_hash(const ResolvedSettings& all);

}  // namespace forebay::train
