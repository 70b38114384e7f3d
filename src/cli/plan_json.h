/// A memory plan as JSON, the same wherever a command prints one.
#pragma once

#include "cli/json_writer.h"
#include "plan/memory_plan.h"

namespace forebay::cli {

/// Members of an open object.
void write_plan(JsonWriter& json, const MemoryPlan& plan);
void write_rates(JsonWriter& json, const MachineRates& rates);
/// An object: total, available, usable, margin, cgroup_limit and cgroup_used (null without one), in bytes.
void write_memory(JsonWriter& json, const SystemMemory& memory);

}  // namespace forebay::cli
