#include "train/grpo/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "train/grpo/advantages.h"
#include "train/grpo/kl_views.h"
#include "train/grpo/objective.h"
#include "train/grpo/run_file.h"
#include "train/grpo/run_parts.h"
#include "train/grpo/same_run.h"
#include "train/grpo/tied_copies.h"

namespace forebay::train {
namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double average(const torch::Tensor& values) {
  return values.numel() == 0 ? 0 : values.to(torch::kFloat64).mean().item<double>();
}

}  // namespace

struct GrpoRun::Impl : RunParts {
  using RunParts::RunParts;

  const std::string results = results_hash(recipe.values());  // in every row

  bool due(int64_t every, int64_t at) const {
    return every > 0 && (at % every == 0 || at == settings.run.steps);
  }
  Result<MetricsRow> do_step(int64_t at, std::stop_token stop);
  Result<Drawn> draw(int64_t at, MetricsRow& row, std::stop_token stop);
  Result<void> probe(const StepBatch& batch, const LogProbs& old, const torch::Tensor& rollout,
                     double kl_view, int64_t at, MetricsRow& row);
  Result<void> decide(int64_t at, double& lr, double& beta);
  Result<void> account(MetricsRow& row);
  Result<void> validate(MetricsRow& row, std::stop_token stop);
  Result<void> steps(std::stop_token stop);
  Result<void> write_model();
};

GrpoRun::GrpoRun(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrpoRun::~GrpoRun() = default;
int64_t GrpoRun::step() const {
  return impl_->step;
}
const Net& GrpoRun::policy() const {
  return *impl_->policy;
}
Result<NamedTensors> GrpoRun::policy_tensors() {
  return impl_->team->collect(without_copies(named_tensors(*impl_->policy), *impl_->policy));
}
Result<void> GrpoRun::close() {
  return impl_->team->leave();
}

Result<std::unique_ptr<GrpoRun>> GrpoRun::open(Storage& storage, Recipe recipe, const Path& directory,
                                               bool resume, RunObserver observer, std::stop_token stop,
                                               const World& world) {
  GrpoSettings settings = TRY(GrpoSettings::read(recipe, world.size));
  auto impl =
      std::make_unique<Impl>(storage, std::move(recipe), std::move(settings), directory, std::move(observer));
  TRY(impl->make(world));
  const auto open = [&]() -> Result<void> {
    if (impl->team->leads()) {
      TRY(storage.make_directory(directory));
      const std::optional<int64_t> last = TRY(last_run_file(storage, directory));
      if (last && !resume)
        return Error{Code::kInvalidArgument, fmt::format("{}: has a run already (step {}): --resume goes on, "
                                                         "or name another directory",
                                                         directory.string(), *last)};
    }
    if (resume) return impl->go_on();
    TRY(impl->begin(stop));
    if (impl->settings.validation.every == 0) return {};
    MetricsRow row;
    row.add("step", 0);
    row.texts.emplace_back("recipe", impl->results);
    TRY(impl->validate(row, {}));
    if (!impl->team->leads()) return {};
    TRY(impl->log->write(row));
    impl->observer.on_row(row);
    return {};
  };
  if (Result<void> opened = open(); !opened) return impl->team->failed(opened.error());
  return std::unique_ptr<GrpoRun>(new GrpoRun(std::move(impl)));
}

// ---- a step ---------------------------------------------------------------------------------------------

/// The leader's draw, in every process. Errors: kCancelled everywhere when the leader was interrupted.
Result<Drawn> GrpoRun::Impl::draw(int64_t at, MetricsRow& row, std::stop_token stop) {
  if (team->size() == 1) return drawer->draw(at, row, stop);
  Result<Drawn> drawn = Drawn();
  Bytes mine;
  if (drawer) {
    drawn = drawer->draw(at, row, stop);
    if (!drawn && drawn.error().code != Code::kCancelled) return drawn;
    if (drawn) mine = drawn->to_bytes();
  }
  const Bytes shared = TRY(team->share(std::move(mine), 0));
  if (shared.empty()) return Error{Code::kCancelled, "interrupted"};
  return drawer ? std::move(drawn) : Drawn::from_bytes(shared);
}

Result<void> GrpoRun::Impl::probe(const StepBatch& batch, const LogProbs& old, const torch::Tensor& rollout,
                                  double kl_view, int64_t at, MetricsRow& row) {
  const LogProbs dense =
      views->has_codec() ? TRY(views->log_probs(Views::Of::kPolicy, View::kDense, batch, at)) : old;
  const LogProbs dense_reference = TRY(views->log_probs(Views::Of::kReference, View::kDense, batch, at));
  const double kl_dense = average(k3(dense_reference.values - dense.values));
  const double gap_dense = average(rollout - dense.values);
  row.add("kl_dense", kl_dense);
  row.add("gap_codec", average(dense.values - old.values));
  row.add("gap_engine", gap_dense);
  row.add("engine_max_diff", (rollout - dense.values).abs().max().item<double>());
  if (kl_dense > 0) row.add("inflation", kl_view / kl_dense);
  if (controller) controller->update(at, kl_dense);
  if (brake) brake->update(gap_dense);
  return {};
}

/// What the leader's numbers say, for everyone: machines may differ in a last bit.
Result<void> GrpoRun::Impl::decide(int64_t at, double& lr, double& beta) {
  lr = settings.grpo.lr;
  if (at <= settings.grpo.warmup) lr *= static_cast<double>(at) / static_cast<double>(settings.grpo.warmup);
  if (brake) lr *= brake->scale();
  beta = controller ? controller->beta() : settings.objective.beta;
  torch::Tensor both = torch::tensor({lr, beta}, torch::kFloat64);
  TRY(team->share(both, 0));
  lr = both[0].item<double>();
  beta = both[1].item<double>();
  return {};
}

Result<MetricsRow> GrpoRun::Impl::do_step(int64_t at, std::stop_token stop) {
  const Clock::time_point start = Clock::now();
  MetricsRow row;
  row.add("step", static_cast<double>(at));
  row.texts.emplace_back("recipe", results);
  TRY(feed->for_drawing(step, sampler()));
  const double refresh_s = seconds_since(start);
  const Clock::time_point draw_start = Clock::now();
  const Drawn d = TRY(draw(at, row, stop));
  const double draw_s = seconds_since(draw_start);

  const Advantages advantages = group_advantages(d.rewards, d.n_answers, settings.advantage);
  row.add("failed_rollouts", static_cast<double>(advantages.n_failed));
  row.add("equal_groups",
          static_cast<double>(advantages.n_equal_groups) / static_cast<double>(d.prompts.size()));
  const std::vector<TrainedSequence> sequences = d.sequences();
  const StepBatch batch = make_step_batch(sequences, settings.pipeline.micro_batch, device);
  const torch::Tensor rollout = d.log_probs();
  row.add("answer_tokens", static_cast<double>(batch.n_tokens) / static_cast<double>(d.rollouts.size()));

  const LogProbs old = TRY(views->log_probs(Views::Of::kPolicy, View::kCodec, batch, at));
  const LogProbs reference_view = TRY(views->log_probs(Views::Of::kReference, View::kCodec, batch, at));
  const double kl_view = average(k3(reference_view.values - old.values));
  row.add("kl_view", kl_view);
  const torch::Tensor gaps = rollout - old.values;
  row.add("gap", average(gaps));
  row.add("gap_sequences", average(batch.padded(gaps).sum(-1) / batch.answer_mask.sum(-1)));
  // The probe and the ledger look and touch nothing: what they send is not counted.
  if (due(settings.probe.every, at)) TRY(probe(batch, old, rollout, kl_view, at, row));
  if (due(settings.ledger.every, at))
    TRY(add_ledger({at, d, batch, rollout, old.values}, *policy, *views, *feed, sampler(), *team, row));

  double lr = 0, beta = 0;
  TRY(decide(at, lr, beta));
  TRY(learner->learn({at, batch, old, reference_view, rollout, advantages, lr, beta}, row));
  TRY(account(row));
  row.add("refresh_s", refresh_s);
  row.add("draw_s", draw_s);
  row.add("step_s", seconds_since(start));
  return row;
}

Result<void> GrpoRun::Impl::account(MetricsRow& row) {
  const WireLedger wire = TRY(views->take_ledger());
  TRY(wire.check());
  const bool is_clean = views->confinement().clean();
  if (!is_clean)
    return Error{Code::kInternal, fmt::format("{} codec calls outside the passes that have codecs",
                                              views->confinement().stray_calls())};
  row.add("wire_bits_fwd", wire.bits_per_row(Leg::kForward));
  row.add("wire_bits_bwd", wire.bits_per_row(Leg::kBackward));
  row.add("wire_bytes_fwd", static_cast<double>(wire.total(Leg::kForward).bytes));
  row.add("wire_bytes_bwd", static_cast<double>(wire.total(Leg::kBackward).bytes));
  row.add("wire_bytes_refresh", static_cast<double>(wire.total(SideAccount::kRefresh).bytes));
  if (settings.pipeline.stages > 1 && !policy->tied_parameter().empty())
    row.add("wire_bytes_tied", static_cast<double>(wire.total(SideAccount::kTied).bytes));
  if (anchor) row.add("wire_bytes_slow", static_cast<double>(wire.total(SideAccount::kSlow).bytes));
  const WeightFeed::Sent sent = feed->take_sent();
  row.add("weight_bytes", static_cast<double>(sent.bytes));
  if (sent.n_elements > 0)
    row.add("weights_changed", static_cast<double>(sent.n_changed) / static_cast<double>(sent.n_elements));
  const std::map<std::string, double> times = TRY(views->take_times());
  for (const auto& [name, seconds] : times) row.add(name, seconds);
  return {};
}

// ---- the run --------------------------------------------------------------------------------------------

Result<void> GrpoRun::Impl::validate(MetricsRow& row, std::stop_token stop) {
  TRY(feed->for_validation(step, sampler()));
  return drawer ? drawer->validate(row, stop) : Result<void>();
}

Result<double> GrpoRun::validation_accuracy(std::stop_token stop) {
  MetricsRow row;
  TRY(impl_->validate(row, stop));
  return row.numbers.empty() ? std::numeric_limits<double>::quiet_NaN() : row.numbers.front().second;
}

Result<void> GrpoRun::Impl::steps(std::stop_token stop) {
  while (step < settings.run.steps) {
    if (TRY(team->any("stop", stop.stop_requested()))) {
      TRY(save());
      return Error{Code::kCancelled, "interrupted"};
    }
    const int64_t at = step + 1;
    Result<MetricsRow> row = do_step(at, stop);
    if (!row) {
      // The step left no trace: what is saved is the one before.
      if (row.error().code == Code::kCancelled) TRY(save());
      return std::move(row).error();
    }
    step = at;
    // Not to be interrupted: the step is done, and a row without it would stay so.
    if (due(settings.validation.every, at)) TRY(validate(*row, {}));
    if (team->leads()) {
      TRY(log->write(*row));
      observer.on_row(*row);
    }
    if (due(settings.run.checkpoint_every, at)) TRY(save());
  }
  return write_model();
}

Result<void> GrpoRun::Impl::write_model() {
  TRY(feed->exact(WeightFeed::Exactly::kPolicy, step, sampler()));
  if (!team->leads()) return {};
  AtomicFile file = TRY(AtomicFile::create(storage, directory / "model.gguf"));
  TRY(file.file().append(drawer->sampler().model_file()));
  return file.commit();
}

Result<void> GrpoRun::run(std::stop_token stop) {
  const Result<void> done = impl_->steps(stop);
  if (done || done.error().code == Code::kCancelled) return done;
  return impl_->team->failed(done.error());
}

}  // namespace forebay::train
