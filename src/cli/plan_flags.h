/// The flags that describe a machine other than this one.
#pragma once

#include <optional>
#include <string>

#include "cli/flags.h"
#include "core/memory_info.h"
#include "plan/speed.h"

namespace forebay::cli {

struct MachineFlags {
  uint64_t ram = 0;
  std::optional<std::string> used;  // a size; absent: what an idle desktop holds
  uint64_t disk_rate = 0;
  uint64_t memory_rate = 0;

  void declare(FlagTable& flags);
  Result<void> check() const;

  /// This machine's, or the simulated one's.
  SystemMemory memory() const;
  bool has_all_rates() const { return disk_rate > 0 && memory_rate > 0; }
  /// assumed_rates() with what was given.
  MachineRates given_rates() const;
  /// Puts given rates over measured ones. A given memory rate is that of weights too, whatever their type.
  void apply(MachineRates& rates) const;
};

}  // namespace forebay::cli
