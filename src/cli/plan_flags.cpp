#include "cli/plan_flags.h"

#include "plan/budget.h"

namespace forebay::cli {

void MachineFlags::declare(FlagTable& flags) {
  flags.bytes("--sim-ram", "SIZE", ram, "plan for a machine with this much memory; 0: this one");
  flags.text(
      "--sim-used", "SIZE", used,
      "with --sim-ram: what the system and other programs hold of it; absent: 2 GiB, at most a quarter");
  flags.bytes("--disk-rate", "RATE", disk_rate, "bytes per second of the disk (3GB); 0: measure");
  flags.bytes("--memory-rate", "RATE", memory_rate,
              "bytes of weights per second that memory and processor take (30GB); 0: measure");
}

Result<void> MachineFlags::check() const {
  if (!used) return {};
  if (ram == 0) return Error{Code::kInvalidArgument, "--sim-used needs --sim-ram"};
  const Result<uint64_t> bytes = parse_bytes(*used);
  if (!bytes) return Error(bytes.error()).in("--sim-used");
  return {};
}

SystemMemory MachineFlags::memory() const {
  if (ram == 0) return system_memory();
  return simulated_memory(ram, used ? *parse_bytes(*used) : usual_use(ram));
}

MachineRates MachineFlags::given_rates() const {
  MachineRates rates = assumed_rates();
  apply(rates);
  return rates;
}

void MachineFlags::apply(MachineRates& rates) const {
  if (disk_rate > 0) {
    rates.disk = static_cast<double>(disk_rate);
    rates.disk_source = "given";
  }
  if (memory_rate > 0) {
    rates.memory = static_cast<double>(memory_rate);
    rates.memory_source = "given";
    rates.kernels.clear();
  }
}

}  // namespace forebay::cli
