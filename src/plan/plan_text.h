/// A plan as people read it.
#pragma once

#include <string>

#include "plan/memory_plan.h"

namespace forebay {

/// The whole table with the reason of every line, and what speed to expect.
std::string plan_table(const MemoryPlan& plan);

/// The same in at most 8 lines, for the start of a run.
std::string plan_lines(const MemoryPlan& plan);

/// "1.93 tok/s, of 518 ms: trunk 240 ms, disk 278 ms (under it experts 60 ms)".
std::string speed_line(const Speed& speed);

}  // namespace forebay
