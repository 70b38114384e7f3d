/// What this machine is and how fast it moves bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "core/memory_budget.h"
#include "core/memory_info.h"
#include "core/storage.h"
#include "gguf/gguf.h"
#include "kernels/context.h"
#include "plan/model_footprint.h"
#include "plan/speed.h"

namespace forebay {

struct MachineFacts {
  int n_cores = 1;  // that this process may use
  Isa isa = Isa::kReference;
  SystemMemory memory;
  uint64_t swap_bytes = 0;
  uint64_t lockable_bytes = 0;  // RLIMIT_MEMLOCK; UINT64_MAX: no limit
  bool io_uring = false;        // the system lets us have one
};
MachineFacts machine_facts();

/// Rates for one model: memory and its two main weight types for a tenth of a second each, and its own
/// experts read from its own file, several at a time, for three tenths. Where the disk cannot be measured,
/// assumed_rates say so. Errors: kIo, kOutOfMemory, kCancelled.
Result<MachineRates> measure_rates(const ModelFootprint& model, const GgufFile* file, Storage& storage,
                                   KernelContext& kernels, std::stop_token stop = {});

}  // namespace forebay
