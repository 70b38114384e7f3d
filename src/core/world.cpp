#include "core/world.h"

#include <cstdlib>

#include <fmt/format.h>

#include "core/parse.h"

namespace forebay {
namespace {

/// How one launcher spells the four numbers. Only rank and size must be there.
struct Spelling {
  std::string launcher;
  std::string rank;
  std::string size;
  std::string local_rank;
  std::string local_size;
};
const Spelling kSpellings[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};
constexpr int kMaxProcesses = 1 << 20;

Result<int> number(const EnvironmentLookup& lookup, const std::string& name, int64_t min, int64_t max) {
  const std::optional<std::string> text = lookup(name);
  if (!text) return Error{Code::kInvalidArgument, name + " is not set"};
  const Result<int64_t> value = parse_int(*text, min, max);
  if (!value)
    return Error{Code::kInvalidArgument,
                 fmt::format("{} is '{}': a number from {} to {}", name, *text, min, max)};
  return static_cast<int>(*value);
}

Result<void> read_numbers(const EnvironmentLookup& lookup, const Spelling& spelling, World& world) {
  world.launcher = spelling.launcher;
  world.size = TRY(number(lookup, spelling.size, 1, kMaxProcesses));
  world.rank = TRY(number(lookup, spelling.rank, 0, world.size - 1));
  // Without them one process per machine: its device is the first.
  if (lookup(spelling.local_rank))
    world.local_rank = TRY(number(lookup, spelling.local_rank, 0, world.size - 1));
  if (lookup(spelling.local_size)) world.local_size = TRY(number(lookup, spelling.local_size, 1, world.size));
  return {};
}

/// A port that all tasks of a Slurm step agree on without talking.
Result<int> slurm_port(const EnvironmentLookup& lookup) {
  const int64_t job = TRY(number(lookup, "SLURM_JOB_ID", 0, INT32_MAX));
  const int64_t step = lookup("SLURM_STEP_ID") ? TRY(number(lookup, "SLURM_STEP_ID", 0, INT32_MAX)) : 0;
  return static_cast<int>(20000 + (job * 7 + step) % 20000);
}

Result<void> read_place(const EnvironmentLookup& lookup, World& world) {
  const std::optional<std::string> host = lookup("MASTER_ADDR");
  const bool is_slurm = world.launcher == "slurm";
  if (host && !host->empty()) {
    world.host = *host;
  } else if (is_slurm) {
    const std::optional<std::string> step = lookup("SLURM_STEP_NODELIST"), job = lookup("SLURM_JOB_NODELIST");
    if (!step && !job)
      return Error{Code::kInvalidArgument,
                   "neither MASTER_ADDR nor SLURM_JOB_NODELIST is set: where is rank 0?"};
    world.host = first_host(step ? *step : *job);
  } else if (world.local_size < world.size) {
    return Error{Code::kInvalidArgument, "MASTER_ADDR is not set: the name or address of rank 0's machine"};
  }
  world.port = lookup("MASTER_PORT") || !is_slurm ? TRY(number(lookup, "MASTER_PORT", 1, 65535))
                                                  : TRY(slurm_port(lookup));
  const std::optional<std::string> agent = lookup("TORCHELASTIC_USE_AGENT_STORE");
  world.has_agent_store = agent && (*agent == "True" || *agent == "true" || *agent == "1");
  return {};
}

}  // namespace

Result<World> read_world(const EnvironmentLookup& lookup) {
  World world;
  for (const Spelling& spelling : kSpellings) {
    const bool has_rank = lookup(spelling.rank).has_value(), has_size = lookup(spelling.size).has_value();
    // RANK alone is a mistake of whoever set it; half of another launcher's words may be anyone's.
    const bool is_ours = spelling.launcher == "torchrun";
    if (is_ours ? !has_rank && !has_size : !has_rank || !has_size) continue;
    TRY(read_numbers(lookup, spelling, world));
    if (world.size > 1) TRY(read_place(lookup, world));
    return world;
  }
  return world;
}

Result<World> world_from_environment() {
  return read_world([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

std::string first_host(const std::string& list) {
  const size_t end = list.find_first_of(",[");
  std::string name = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return name;
  const size_t number_end = list.find_first_of(",-]", end + 1);
  name += list.substr(end + 1, number_end == std::string::npos ? number_end : number_end - end - 1);
  // What follows the brackets belongs to every name: "rack[1-2]-a".
  const size_t close = list.find(']', end);
  if (close != std::string::npos) name += list.substr(close + 1, list.find(',', close) - close - 1);
  return name;
}

}  // namespace forebay
