// forebay doctor: what this machine is, how fast it moves bytes, and which known models would run on it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/plan_flags.h"
#include "cli/plan_json.h"
#include "cli/synthetic_model.h"
#include "cli/verbosity.h"
#include "core/format.h"
#include "core/interrupt.h"
#include "core/progress.h"
#include "plan/machine.h"
#include "plan/memory_plan.h"
#include "plan/probe.h"
#include "plan/probe_file.h"
#include "synth/geometry.h"

namespace forebay::cli {
namespace {

/// Types that published files of a family have their experts in; the down projections may differ.
struct Quant {
  std::string name;
  TypePlan types;
};

/// Experts of Flash-Next are 640 wide: their down projections need types of 32 or 64 weights.
std::vector<Quant> quants_of(std::string_view model) {
  const auto down = [](DType type) { return std::vector<TypePlan::Entry>{{"*ffn_down_exps.weight", type}}; };
  if (model == "qwen3.8-flash-next")
    return {{"Q2_0", {DType::kQ2_0, {}}},
            {"IQ2_XS", {DType::kIQ2_XS, down(DType::kQ2_0)}},
            {"Q4_K",
             {DType::kQ4_K,
              {{"*ffn_down_exps.weight", DType::kQ5_1}, {"per_layer_token_embd.weight", DType::kIQ4_NL}}}}};
  return {{"Q2_K", {DType::kQ2_K, down(DType::kQ3_K)}},
          {"IQ2_XS", {DType::kIQ2_XS, down(DType::kIQ3_XXS)}},
          {"Q4_K", {DType::kQ4_K, down(DType::kQ5_K)}}};
}

/// What the disk did.
struct DiskReport {
  uint64_t file_bytes = 0;
  std::vector<DiskRate> rates;
  std::vector<std::string> notes;
};

struct ModelRow {
  std::string name;
  std::string quant;
  uint64_t file_bytes = 0;
  uint64_t expert_bytes = 0;
  uint64_t least_budget = 0;
  std::optional<MemoryPlan> plan;  // empty: it does not fit
};

class DoctorCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  Result<void> measure_memory(const MachineFacts& facts, MachineRates& rates);
  Result<DiskReport> measure_disks(std::stop_token stop);
  Result<std::vector<ModelRow>> plan_models(const SystemMemory& memory, const MachineRates& rates,
                                            const DiskReport& disk) const;
  void print_machine(const MachineFacts& facts, const MachineRates& rates, const DiskReport& disk) const;
  void print_models(const SystemMemory& memory, const std::vector<ModelRow>& rows) const;
  std::string as_json(const MachineFacts& facts, const MachineRates& rates, const DiskReport& disk,
                      const std::vector<ModelRow>& rows, const FlagTable& flags) const;

  std::string folder_ = ".";
  uint64_t file_bytes_ = uint64_t{1} << 30;
  double seconds_ = 0.4;
  int64_t threads_ = 0;
  PlanRequest request_{.chunk = 0};  // as forebay run has it
  MachineFlags machine_;
  bool json_ = false;
  Verbosity verbosity_;
};

void DoctorCommand::declare(FlagTable& flags) {
  flags.section("What is measured");
  flags.text("--dir", "DIR", folder_, "where models are kept: a test file is written and read there");
  flags.bytes("--size", "SIZE", file_bytes_, "of the test file; it is smaller where writing it takes long");
  flags.number("--seconds", "S", seconds_, {0.01, 60}, "for each measurement");
  flags.integer("-t,--threads", "N", threads_, {0, 1024}, "threads that read memory; 0: the usable cores");
  flags.section("What is planned");
  machine_.declare(flags);
  flags.integer("-c,--context", "N", request_.context, {0, 1 << 24},
                "tokens of a session; 0: the model's, at most 8192");
  flags.section("Result");
  flags.toggle("--json", json_, "print one JSON object");
  verbosity_.declare(flags);
}

Result<void> DoctorCommand::check() {
  TRY(verbosity_.check());
  constexpr uint64_t kLeast = uint64_t{8} << 20;  // a few reads of each size
  if (file_bytes_ < kLeast)
    return Error{Code::kInvalidArgument, fmt::format("--size: {} bytes, at least {}", file_bytes_, kLeast)};
  return machine_.check();
}

/// What is known before a model says how large its reads are: the rate of the middle size.
void take_disk_rate(const DiskReport& disk, MachineRates& rates) {
  if (disk.rates.empty()) return;
  const DiskRate& rate = disk.rates[disk.rates.size() / 2];
  if (rate.n_reads == 0) return;
  rates.disk = rate.bytes_per_second;
  rates.disk_source =
      fmt::format("measured: {} reads of {} in flight", rate.n_in_flight, human_bytes(rate.blob_bytes));
}

Result<ExitCode> DoctorCommand::run(const FlagTable& flags) {
  const Interrupt interrupt;
  log_settings(flags);
  const MachineFacts facts = machine_facts();
  MachineRates rates = machine_.given_rates();
  DiskReport disk;
  // The disk first: what can fail fails before anybody has waited.
  if (machine_.disk_rate == 0) {
    disk = TRY(measure_disks(interrupt.token()));
    take_disk_rate(disk, rates);
  }
  if (machine_.memory_rate == 0) TRY(measure_memory(facts, rates));
  TRY(check_stop(interrupt.token()));
  const SystemMemory memory = machine_.memory();
  const std::vector<ModelRow> rows = TRY(plan_models(memory, rates, disk));
  if (json_) {
    fmt::print("{}\n", as_json(facts, rates, disk, rows, flags));
    return ExitCode::kDone;
  }
  print_machine(facts, rates, disk);
  print_models(memory, rows);
  return ExitCode::kDone;
}

Result<void> DoctorCommand::measure_memory(const MachineFacts& facts, MachineRates& rates) {
  ThreadPool pool(static_cast<int>(threads_));
  KernelContext kernels(pool, facts.isa);
  kernels.set_activations(Activations::kInt8);  // as forebay run computes
  MemoryBudget budget;
  const ProbeBuffer buffer = TRY(ProbeBuffer::allocate(facts.memory.usable(), pool, budget));
  const ProbeDuration duration(seconds_);
  rates.memory = buffer.measure_reading(pool, facts.isa, duration);
  rates.memory_source =
      fmt::format("measured, {} threads over {}", pool.n_threads(), human_bytes(buffer.bytes()));
  for (const DType type : {DType::kQ8_0, DType::kQ2_0, DType::kQ2_K, DType::kIQ2_XS, DType::kQ4_K})
    rates.kernels[type] = buffer.measure_weights(kernels, type, duration / 4);
  return {};
}

Result<DiskReport> DoctorCommand::measure_disks(std::stop_token stop) {
  const std::unique_ptr<Storage> storage = make_posix_storage();
  std::optional<Progress> progress;
  const auto on_write = [&](uint64_t done, uint64_t total) {
    if (!progress) progress.emplace("test file", total, ProgressOptions{.style = progress_style(verbosity_)});
    progress->set(done);
  };
  ProbeFile probe = TRY(ProbeFile::create(*storage, folder_, {.bytes = file_bytes_}, on_write, stop));
  progress.reset();

  DiskReport report;
  report.file_bytes = probe.bytes();
  MemoryBudget budget;
  for (const uint64_t kib : {512, 1536, 3072}) {
    const uint64_t blob = kib << 10;
    const std::vector<uint64_t> places = probe.places(blob);
    if (places.empty()) continue;
    report.rates.push_back(TRY(measure_disk(
        probe.file(), places, {.blob_bytes = blob, .n_in_flight = 8, .duration = ProbeDuration(seconds_)},
        budget, stop)));
  }
  if (probe.in_memory())
    report.notes.push_back(fmt::format("{} is in memory (tmpfs), not on a disk", folder_));
  else if (!probe.file().direct())
    report.notes.push_back("this file system refuses direct reads: what was measured is the page cache");
  else
    report.notes.push_back(
        fmt::format("the file of {} was just written: a cache below the file system (drive, controller, host "
                    "of a virtual "
                    "machine) may hold it, and a model of tens of GB may be read more slowly",
                    human_bytes(report.file_bytes)));
  if (report.file_bytes < file_bytes_)
    report.notes.push_back(fmt::format("writing is slow here: the file has {} instead of {}",
                                       human_bytes(report.file_bytes), human_bytes(file_bytes_)));
  return report;
}

/// The rate of the measured size that is nearest by ratio.
double rate_at(const DiskReport& disk, uint64_t blob_bytes, double otherwise) {
  double best = INFINITY, rate = otherwise;
  for (const DiskRate& r : disk.rates) {
    const double distance =
        std::abs(std::log(static_cast<double>(r.blob_bytes) / static_cast<double>(blob_bytes)));
    if (r.n_reads == 0 || distance >= best) continue;
    best = distance;
    rate = r.bytes_per_second;
  }
  return rate;
}

Result<std::vector<ModelRow>> DoctorCommand::plan_models(const SystemMemory& memory,
                                                         const MachineRates& rates,
                                                         const DiskReport& disk) const {
  const Budget budget = TRY(choose_budget(0, memory));
  std::vector<ModelRow> rows;
  for (const std::string& name : synth::geometry_names()) {
    const SyntheticModel synthetic = TRY(SyntheticModel::like(name));
    for (const Quant& quant : quants_of(name)) {
      const ModelFootprint model = TRY(synthetic.footprint(quant.types));
      ModelRow row;
      row.name = name;
      row.quant = quant.name;
      row.file_bytes = model.file_bytes;
      row.expert_bytes = model.experts.empty() ? 0 : model.experts.front().bytes;
      row.least_budget = plan_limits(model, request_, budget.bytes).least_budget;
      MachineRates here = rates;
      if (row.expert_bytes > 0) here.disk = rate_at(disk, row.expert_bytes, rates.disk);
      Result<MemoryPlan> plan = plan_memory(model, request_, budget, here);
      if (plan)
        row.plan = std::move(plan).value();
      else if (plan.error().code != Code::kOutOfMemory)
        return plan.error();
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string gigabytes_per_second(double rate) {
  return fmt::format("{:.2f} GB/s", rate / 1e9);
}

std::string_view describe(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "AVX2";
    case Isa::kNeon:
      return "NEON with dot products";
    case Isa::kReference:
      break;
  }
  return "no AVX2 or NEON with dot products: the reference kernels will run";
}

void DoctorCommand::print_machine(const MachineFacts& facts, const MachineRates& rates,
                                  const DiskReport& disk) const {
  const auto line = [](std::string_view name, std::string_view text) {
    fmt::print("  {:<12} {}\n", name, text);
  };
  fmt::print("Machine\n");
  line("cores", fmt::format("{} usable, {}", facts.n_cores, describe(facts.isa)));
  line("memory", describe(facts.memory) + (facts.memory.cgroup_limit ? "" : ", no control group limit"));
  line("swap", facts.swap_bytes == 0 ? "none" : human_bytes(facts.swap_bytes));
  line("locking", facts.lockable_bytes == UINT64_MAX
                      ? "no limit (RLIMIT_MEMLOCK)"
                      : human_bytes(facts.lockable_bytes) + " (RLIMIT_MEMLOCK)");
  line("io_uring", facts.io_uring ? "available" : "not available: reads go through threads");

  fmt::print("\nMemory\n");
  line("reading", fmt::format("{} ({})", gigabytes_per_second(rates.memory), rates.memory_source));
  for (const auto& [type, rate] : rates.kernels)
    line(name_of(type), gigabytes_per_second(rate) + " of weights through the kernels, one row");

  fmt::print("\nDisk\n");
  if (disk.rates.empty())
    line("reading", fmt::format("{} ({})", gigabytes_per_second(rates.disk), rates.disk_source));
  for (const DiskRate& rate : disk.rates)
    line(human_bytes(rate.blob_bytes), fmt::format("{} in {} reads{}, {} in flight, the slowest {:.1f} ms",
                                                   gigabytes_per_second(rate.bytes_per_second), rate.n_reads,
                                                   rate.direct ? " past the page cache" : "",
                                                   rate.n_in_flight, 1000 * rate.slowest_seconds));
  for (const std::string& note : disk.notes) line("note", note);
}

void DoctorCommand::print_models(const SystemMemory& memory, const std::vector<ModelRow>& rows) const {
  fmt::print("\nModels, predicted for {}{}\n",
             machine_.ram > 0 ? "a simulated machine of " : "this machine of ", describe(memory));
  fmt::print("  {:<20} {:<8} {:>9} {:>9} {:>9} {:>9} {:>7} {:>10}  {}\n", "model", "experts", "file",
             "at least", "budget", "in memory", "hits", "read/token", "speed");
  for (const ModelRow& row : rows) {
    fmt::print("  {:<20} {:<8} {:>9} {:>9} ", row.name, row.quant, human_bytes(row.file_bytes),
               human_bytes(row.least_budget));
    if (!row.plan) {
      fmt::print("{:>9} {:>9} {:>7} {:>10}  {}\n", "-", "-", "-", "-", "does not fit");
      continue;
    }
    const Speed& s = row.plan->speed;
    fmt::print("{:>9} {:>7.1f} % {:>5.1f} % {:>10}  {:.3g} tok/s, bound by the {}\n",
               human_bytes(row.plan->budget.bytes), 100 * s.resident_share, 100 * s.hit_rate,
               human_bytes(s.disk_bytes), s.tokens_per_second(), s.bound());
  }
  fmt::print(
      "Budgets hold everything: trunk, state for {} tokens, scratch, experts. Speeds are predictions for "
      "decoding, not "
      "measurements;\nthe hit rate assumes {}.\n",
      request_.context == 0 ? "8192" : fmt::format("{}", request_.context), HitCurve::published().source());
}

std::string DoctorCommand::as_json(const MachineFacts& facts, const MachineRates& rates,
                                   const DiskReport& disk, const std::vector<ModelRow>& rows,
                                   const FlagTable& flags) const {
  JsonWriter json;
  json.begin_object();
  json.key("cores").integer(facts.n_cores).key("isa").string(name_of(facts.isa));
  json.key("memory");
  write_memory(json, facts.memory);
  json.key("planned_memory");
  write_memory(json, machine_.memory());
  json.key("swap_bytes").integer(facts.swap_bytes);
  json.key("lockable_bytes");
  facts.lockable_bytes == UINT64_MAX ? json.null() : json.integer(facts.lockable_bytes);
  json.key("io_uring").boolean(facts.io_uring);
  json.key("rates").begin_object();
  write_rates(json, rates);
  json.end_object();

  json.key("disk").begin_object().key("dir").string(folder_).key("file_bytes").integer(disk.file_bytes);
  json.key("direct").boolean(!disk.rates.empty() && disk.rates.front().direct);
  json.key("reads").begin_array();
  for (const DiskRate& rate : disk.rates) {
    json.begin_object().key("bytes").integer(rate.blob_bytes).key("in_flight").integer(rate.n_in_flight);
    json.key("n").integer(rate.n_reads).key("bytes_per_second").number(rate.bytes_per_second);
    json.key("slowest_seconds").number(rate.slowest_seconds).end_object();
  }
  json.end_array().key("notes").begin_array();
  for (const std::string& note : disk.notes) json.string(note);
  json.end_array().end_object();

  json.key("models").begin_array();
  for (const ModelRow& row : rows) {
    json.begin_object().key("name").string(row.name).key("experts").string(row.quant);
    json.key("predicted").boolean(true);
    json.key("file_bytes").integer(row.file_bytes).key("expert_bytes").integer(row.expert_bytes);
    json.key("least_budget_bytes").integer(row.least_budget).key("fits").boolean(row.plan.has_value());
    json.key("plan");
    if (row.plan) {
      json.begin_object();
      write_plan(json, *row.plan);
      json.end_object();
    } else {
      json.null();
    }
    json.end_object();
  }
  json.end_array();
  write_settings(json, flags);
  json.end_object();
  return json.text();
}

}  // namespace

CommandInfo doctor_command() {
  return {
      .name = "doctor",
      .summary = "measure this machine and say which models would run on it",
      .usage = "[options]",
      .examples = {{"forebay doctor", "about five seconds, a test file of 1 GiB here"},
                   {"forebay doctor --dir /mnt/models", "the disk that models will be on"},
                   {"forebay doctor --sim-ram 16G", "as if it had less memory"}},
      .details =
          "Needs no model. Measures how fast memory, kernels and disk move weights, and predicts from that, "
          "by "
          "the same rules as forebay plan, how known models would run. The test file has no name while it is "
          "there: however the program ends, its bytes are freed.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<DoctorCommand>()); }};
}

}  // namespace forebay::cli
