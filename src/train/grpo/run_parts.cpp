#include "train/grpo/run_parts.h"

#include <fmt/format.h>

#include "train/grpo/policy.h"
#include "train/grpo/run_file.h"
#include "train/grpo/tied_copies.h"
#include "train/grpo/warm_start.h"
#include "train/nets/device.h"

namespace forebay::train {
namespace {

/// "cuda" with several processes: each machine's processes take its GPUs in turn.
Result<torch::Device> device_of(const std::string& name, const World& world) {
  const torch::Device device = TRY(device_named("run.device", name));
  if (world.size == 1 || !device.is_cuda() || device.has_index()) return device;
  const auto n_devices = static_cast<int>(torch::cuda::device_count());
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(world.local_rank % n_devices));
}

}  // namespace

Result<void> RunParts::make(const World& world) {
  if (settings.run.threads > 0) torch::set_num_threads(static_cast<int>(settings.run.threads));
  // Before anything starts threads or opens connections: the process that rewards is a fork.
  if (world.rank == 0) drawer = TRY(Drawer::start(settings));
  team = TRY(Team::meet(world, settings.comm));
  const Result<void> made = make_model(world);
  if (!made) return team->failed(made.error());
  return {};
}

Result<void> RunParts::make_model(const World& world) {
  device = TRY(device_of(settings.run.device, world));
  std::unique_ptr<Task> task = TRY(make_task(settings.task.name));
  const Policy made = TRY(make_policy(storage, settings, *task, team->rank(), team->size(), device));
  policy = made.net;
  reference = made.reference;
  if (drawer) TRY(drawer->learn_words(made.words));
  for (torch::Tensor& p : reference->parameters()) p.set_requires_grad(false);
  views = TRY(Views::create(*policy, *reference, settings, *team));
  feed = std::make_unique<WeightFeed>(*policy, settings, *team);
  if (settings.controller.enabled) {
    const SetpointTable table =
        TRY(settings.controller.table.empty()
                ? SetpointTable::from_metrics(TRY(read_text(storage, settings.controller.table_file)),
                                              settings.controller.kappa)
                : SetpointTable::create(settings.controller.table, settings.controller.kappa));
    controller.emplace(settings.controller.options, table, settings.objective.beta);
  }
  if (settings.brake.enabled) brake.emplace(settings.brake.options);
  return {};
}

Result<void> RunParts::write_recipe() {
  AtomicFile file = TRY(AtomicFile::create(storage, directory / "recipe.toml"));
  const std::string text = recipe.resolved();
  TRY(file.file().append(std::as_bytes(std::span(text))));
  return file.commit();
}

Result<void> RunParts::finish() {
  whole_reference = TRY(team->collect(without_copies(named_tensors(*reference), *reference)));
  // Copies: what a stage holds itself goes on changing in place.
  for (auto& [name, tensor] : whole_reference) tensor = tensor.clone();
  if (team->leads()) {
    reference_hash = fmt::format("{:016x}", tensors_hash(whole_reference));
    log = TRY(MetricsLog::open(storage, directory / "metrics.jsonl"));
  }
  if (settings.anchor.every > 0)
    anchor = TRY(SlowCircuit::create(*policy, *reference, whole_reference, settings, *team));
  learner = std::make_unique<Learner>(*policy, *views, settings, *team, anchor.get());
  return {};
}

Result<void> RunParts::begin(std::stop_token stop) {
  if (team->leads()) TRY(write_recipe());
  TRY(warm_start(*policy, *views, drawer.get(), *team, settings, observer.on_sft, stop));
  copy_parameters(*policy, *reference);
  TRY(finish());
  return save();
}

}  // namespace forebay::train
