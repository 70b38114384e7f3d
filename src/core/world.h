/// Which process of how many this is, and where they meet: what every launcher says, each in its own words.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "forebay/result.h"

namespace forebay {

struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the processes of this machine
  int local_size = 1;
  std::string host = "127.0.0.1";  // of rank 0
  int port = 0;                    // 0: nothing to meet for, size is 1
  /// torchrun's agent keeps a store at host:port, and every rank is its client.
  bool has_agent_store = false;
  std::string launcher = "none";  // "torchrun" (or anything that sets RANK), "openmpi", "pmi", "slurm"
};

/// The value of an environment variable.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// RANK and WORLD_SIZE, else what mpirun, an MPI's process manager, or srun sets; MASTER_ADDR and MASTER_PORT
/// with any of them. Slurm's jobs know their first host and get a port from the job's number. Without any,
/// one process. Errors: kInvalidArgument naming the variable, its value and what it should be.
Result<World> read_world(const EnvironmentLookup& lookup);

/// Of this process.
Result<World> world_from_environment();

/// "node[03-05,9],gpu1" -> "node03"; Slurm's way to write many names.
std::string first_host(const std::string& list);

}  // namespace forebay
