#include "plan/machine.h"

#include <cstring>

#include <fmt/format.h>
#include <linux/io_uring.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "core/cgroup.h"
#include "core/format.h"
#include "plan/probe.h"
#include "quant/quant.h"

namespace forebay {
namespace {

/// Containers often forbid the call.
bool io_uring_allowed() {
  io_uring_params parameters;
  std::memset(&parameters, 0, sizeof parameters);
  const long ring = ::syscall(SYS_io_uring_setup, 1, &parameters);
  if (ring < 0) return false;
  ::close(static_cast<int>(ring));
  return true;
}

/// The largest stack of experts in the file: where they begin, and how much one is.
struct ExpertPlaces {
  int shard = 0;
  uint64_t bytes = 0;
  std::vector<uint64_t> places;
};

/// Reads of one expert's size over all expert tensors of one shard: in place an expert is three smaller
/// reads, which are in flight together.
ExpertPlaces expert_places(const GgufFile& file) {
  ExpertPlaces found;
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.name.find("_exps.") == std::string::npos || tensor.n_dims != 3) continue;
    const uint64_t plane = tensor.bytes / tensor.ne[2];
    if (found.places.empty()) {
      found.shard = tensor.shard;
      found.bytes = plane;
    }
    if (tensor.shard != found.shard || plane < found.bytes) continue;
    for (uint64_t e = 0; e < tensor.ne[2]; ++e) found.places.push_back(tensor.offset + e * plane);
  }
  return found;
}

}  // namespace

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.n_cores = n_usable_cores();
  facts.isa = best_isa();
  facts.memory = system_memory();
  struct sysinfo system = {};
  if (::sysinfo(&system) == 0) facts.swap_bytes = static_cast<uint64_t>(system.totalswap) * system.mem_unit;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
    facts.lockable_bytes = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
  facts.io_uring = io_uring_allowed();
  return facts;
}

Result<MachineRates> measure_rates(const ModelFootprint& model, const GgufFile* file, Storage& storage,
                                   KernelContext& kernels, std::stop_token stop) {
  MemoryBudget budget;
  MachineRates rates = assumed_rates();
  {
    const ProbeBuffer buffer = TRY(ProbeBuffer::allocate(system_memory().usable(), kernels.pool(), budget));
    const ProbeDuration tenth(0.1);
    rates.memory = buffer.measure_reading(kernels.pool(), kernels.isa(), tenth);
    for (const DType type : {model.trunk_type, model.expert_type})
      if (!rates.kernels.contains(type) && find_codec(type) != nullptr)
        rates.kernels[type] = buffer.measure_weights(kernels, type, tenth);
    rates.memory_source = fmt::format("measured, {} threads", kernels.pool().n_threads());
  }
  if (file == nullptr) return rates;
  const ExpertPlaces experts = expert_places(*file);
  if (experts.places.empty()) return rates;
  const std::unique_ptr<ReadableFile> direct = TRY(storage.open_direct(file->shard_path(experts.shard)));
  const DiskRate disk = TRY(measure_disk(
      *direct, experts.places,
      {.blob_bytes = experts.bytes, .n_in_flight = 8, .duration = ProbeDuration(0.3)}, budget, stop));
  if (disk.n_reads == 0) return rates;
  rates.disk = disk.bytes_per_second;
  rates.disk_source =
      fmt::format("measured: {} reads of {} in flight{}", disk.n_in_flight, human_bytes(disk.blob_bytes),
                  disk.direct ? "" : ", through the page cache: the disk may be slower");
  return rates;
}

}  // namespace forebay
