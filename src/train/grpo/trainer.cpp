#include "train/grpo/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "train/fit/adamw.h"
#include "train/grpo/policy.h"
#include "train/grpo/run_file.h"
#include "train/grpo/sampler.h"
#include "train/grpo/views.h"
#include "train/grpo/warm_start.h"
#include "train/nets/files.h"
#include "train/tasks/reward_worker.h"
#include "train/tasks/task.h"

namespace forebay::train {
namespace {

using Clock = std::chrono::steady_clock;

// Draws of training and of validation are of two streams; validation is greedy and needs none.
constexpr uint64_t kStreamsPerStep = uint64_t{1} << 32;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double average(const torch::Tensor& values) {
  return values.numel() == 0 ? 0 : values.to(torch::kFloat64).mean().item<double>();
}

std::string prefixed(std::string_view prefix, const std::string& name) {
  return std::string(prefix) + name;
}

/// Keys that may change when a run goes on: how long, how fast and how often, not what.
bool may_change(std::string_view key) {
  for (const std::string_view section : {"run.", "sampler.", "probe.", "validation."})
    if (key.starts_with(section)) return key != "run.seed" && key != "run.bf16";
  return false;
}

Result<void> check_same_run(const std::string& before, const Recipe& now, const Path& directory) {
  const auto old = nlohmann::json::parse(before, nullptr, /*allow_exceptions=*/false);
  if (!old.is_object())
    return Error{Code::kCorrupt, directory.string() + ": a checkpoint without its recipe"};
  for (const auto& [key, value] : now.values()) {
    const std::string was = old.value(key, "(not there)");
    if (was != value && !may_change(key))
      return Error{Code::kInvalidArgument,
                   fmt::format("{} is {}, the run in {} began with {}: go on with that, or start another run",
                               key, value, directory.string(), was)};
  }
  return {};
}

}  // namespace

/// What a step drew.
struct Drawn {
  std::vector<Item> items;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<Rollout> rollouts;             // [prompts * answers]
  std::vector<std::optional<Score>> scores;  // none: failed
};

struct GrpoRun::Impl {
  Impl(Storage& s, Recipe r, GrpoSettings g, Path d, RunObserver o)
      : storage(s),
        recipe(std::move(r)),
        settings(std::move(g)),
        directory(std::move(d)),
        observer(std::move(o)) {}

  Storage& storage;
  Recipe recipe;
  GrpoSettings settings;
  Path directory;
  RunObserver observer;

  std::unique_ptr<Task> task;
  std::optional<RewardWorker> rewards;
  std::shared_ptr<Net> policy, reference;
  std::optional<Sampler> sampler;
  std::unique_ptr<Views> views;
  std::unique_ptr<AdamW> optimizer;
  std::optional<BetaController> controller;
  std::optional<LrBrake> brake;
  std::optional<MetricsLog> log;
  int64_t step = 0;
  std::string reference_hash;

  int64_t max_tokens() const {
    return settings.grpo.max_tokens > 0 ? settings.grpo.max_tokens : task->max_answer_bytes() + 1;
  }
  bool due(int64_t every, int64_t at) const {
    return every > 0 && (at % every == 0 || at == settings.run.steps);
  }

  Result<void> build(std::stop_token stop);
  Result<void> start(std::stop_token stop);
  Result<void> go_on();
  Result<void> finish_build();
  Result<void> save();
  Result<Drawn> draw(int64_t at, std::stop_token stop);
  Result<std::vector<std::optional<Score>>> score(std::span<const Item> items,
                                                  std::span<const Rollout> rollouts, size_t n_answers);
  Result<MetricsRow> do_step(int64_t at, std::stop_token stop);
  Result<void> probe(const Drawn& drawn, const StepBatch& batch, const LogProbs& old, double kl_view,
                     int64_t at, const torch::Tensor& rollout, MetricsRow& row);
  Result<void> update(const StepBatch& batch, const LogProbs& old, const LogProbs& reference_view,
                      const torch::Tensor& rollout, const Advantages& advantages, double lr, int64_t at,
                      MetricsRow& row);
  Result<void> validate(MetricsRow& row, std::stop_token stop);
};

GrpoRun::GrpoRun(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrpoRun::~GrpoRun() = default;
int64_t GrpoRun::step() const {
  return impl_->step;
}
const Net& GrpoRun::policy() const {
  return *impl_->policy;
}

// ---- opening --------------------------------------------------------------------------------------------

Result<void> GrpoRun::Impl::build(std::stop_token) {
  if (settings.run.threads > 0) torch::set_num_threads(static_cast<int>(settings.run.threads));
  task = TRY(make_task(settings.task.name));
  // Before anything starts threads: the worker is a fork.
  rewards.emplace(TRY(RewardWorker::start(*task)));
  Policy made = TRY(make_policy(storage, settings, *task));
  policy = made.net;
  reference = made.reference;
  sampler = TRY(Sampler::create(*made.vocabulary_storage, made.vocabulary,
                                {.threads = static_cast<int>(settings.sampler.threads),
                                 .n_sequences = settings.sampler.sequences,
                                 .context = settings.sampler.context,
                                 .max_window = settings.sampler.window}));
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

Result<void> GrpoRun::Impl::start(std::stop_token stop) {
  TRY(warm_start(*policy, *task, *sampler, settings, observer.on_sft, stop));
  copy_parameters(*policy, *reference);
  return {};
}

Result<void> GrpoRun::Impl::finish_build() {
  for (torch::Tensor& p : reference->parameters()) p.set_requires_grad(false);
  reference_hash = fmt::format("{:016x}", tensors_hash(named_tensors(*reference)));
  views = TRY(Views::create(*policy, *reference, settings));
  optimizer = std::make_unique<AdamW>(
      *policy, AdamWOptions{.beta2 = 0.999, .weight_decay = settings.grpo.weight_decay});
  log = TRY(MetricsLog::open(storage, directory / "metrics.jsonl"));
  return {};
}

Result<void> GrpoRun::Impl::save() {
  RunFile run;
  for (const auto& [name, tensor] : named_tensors(*policy)) run.tensors[prefixed("policy.", name)] = tensor;
  for (const auto& [name, tensor] : named_tensors(*reference))
    run.tensors[prefixed("reference.", name)] = tensor;
  for (const auto& [name, tensor] : optimizer->state()) run.tensors[prefixed("optimizer.", name)] = tensor;
  for (const auto& [name, tensor] : views->state()) run.tensors[prefixed("codec.", name)] = tensor;
  nlohmann::json values(recipe.values());
  nlohmann::json brake_state = nullptr;
  if (brake) {
    const LrBrake::State s = brake->state();
    brake_state = {{"gaps", s.gaps}, {"braking", s.braking}, {"fired", s.n_fired}};
  }
  run.facts = {{"step", std::to_string(step)},
               {"recipe", values.dump()},
               {"reference_hash", reference_hash},
               {"optimizer_steps", std::to_string(optimizer->n_steps())},
               {"next_item", std::to_string(step * settings.grpo.prompts)},
               // Shortest digits that read back as the same number.
               {"beta", nlohmann::json(controller ? controller->beta() : settings.objective.beta).dump()},
               {"brake", brake_state.dump()}};
  return write_run_file(storage, run_file_path(directory, step), run);
}

Result<void> GrpoRun::Impl::go_on() {
  const std::optional<int64_t> last = TRY(last_run_file(storage, directory));
  if (!last) return Error{Code::kNotFound, directory.string() + ": no checkpoint to go on from"};
  const Path path = run_file_path(directory, *last);
  RunFile run = TRY(read_run_file(storage, path));
  TRY(check_same_run(run.facts["recipe"], recipe, directory));
  const auto fill = [&](std::string_view prefix,
                        const std::map<std::string, torch::Tensor>& into) -> Result<void> {
    const torch::NoGradGuard no_gradients;
    for (const auto& [name, tensor] : into) {
      const auto found = run.tensors.find(prefixed(prefix, name));
      if (found == run.tensors.end() || found->second.sizes() != tensor.sizes())
        return Error{Code::kCorrupt, fmt::format("{}: tensor {}{} is missing or of another shape",
                                                 path.string(), prefix, name)};
      torch::Tensor target = tensor;
      target.copy_(found->second);
    }
    return {};
  };
  const auto parameters = [](const Net& net) {
    std::map<std::string, torch::Tensor> map;
    for (const auto& item : net.named_parameters()) map[item.key()] = item.value();
    return map;
  };
  TRY(fill("policy.", parameters(*policy)));
  TRY(fill("reference.", parameters(*reference)));
  TRY(finish_build());
  if (run.facts["reference_hash"] != reference_hash)
    return Error{Code::kCorrupt, fmt::format("{}: the reference has hash {}, the run began with {}",
                                             path.string(), reference_hash, run.facts["reference_hash"])};
  TRY(fill("optimizer.", optimizer->state()));
  std::map<std::string, torch::Tensor> codec;
  for (const auto& [name, tensor] : run.tensors)
    if (name.starts_with("codec.")) codec[name.substr(6)] = tensor;
  TRY(views->restore(codec));
  const auto number = [&](const char* fact) {
    return nlohmann::json::parse(run.facts[fact], nullptr, /*allow_exceptions=*/false);
  };
  const auto beta = number("beta"), steps = number("optimizer_steps"), at = number("step"),
             braked = number("brake");
  if (!beta.is_number() || !steps.is_number_integer() || at != *last)
    return Error{Code::kCorrupt, path.string() + ": facts that are no numbers"};
  optimizer->set_n_steps(steps.get<int64_t>());
  step = *last;
  if (controller) controller->restore(beta.get<double>());
  if (brake && braked.is_object())
    brake->restore({braked.value("gaps", std::vector<double>()), braked.value("braking", false),
                    braked.value("fired", int64_t{0})});
  MetricsRow row;
  row.texts.emplace_back("event", "resume");
  row.add("from_step", static_cast<double>(step));
  return log->write(row);
}

Result<std::unique_ptr<GrpoRun>> GrpoRun::open(Storage& storage, Recipe recipe, const Path& directory,
                                               bool resume, RunObserver observer, std::stop_token stop) {
  GrpoSettings settings = TRY(GrpoSettings::read(recipe));
  TRY(storage.make_directory(directory));
  const std::optional<int64_t> last = TRY(last_run_file(storage, directory));
  if (last && !resume)
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: has a run already (step {}): --resume goes on, or name another directory",
                             directory.string(), *last)};
  auto impl =
      std::make_unique<Impl>(storage, std::move(recipe), std::move(settings), directory, std::move(observer));
  TRY(impl->build(stop));
  if (resume) {
    TRY(impl->go_on());
  } else {
    AtomicFile file = TRY(AtomicFile::create(storage, directory / "recipe.toml"));
    const std::string text = impl->recipe.resolved();
    TRY(file.file().append(std::as_bytes(std::span(text))));
    TRY(file.commit());
    TRY(impl->start(stop));
    TRY(impl->finish_build());
    TRY(impl->save());
    if (impl->settings.validation.every > 0) {
      MetricsRow row;
      row.add("step", 0);
      TRY(impl->validate(row, stop));
      TRY(impl->log->write(row));
      impl->observer.on_row(row);
    }
  }
  return std::unique_ptr<GrpoRun>(new GrpoRun(std::move(impl)));
}

// ---- a step ---------------------------------------------------------------------------------------------

Result<std::vector<std::optional<Score>>> GrpoRun::Impl::score(std::span<const Item> items,
                                                               std::span<const Rollout> rollouts,
                                                               size_t n_answers) {
  std::vector<Answer> answers;
  for (size_t i = 0; i < rollouts.size(); ++i)
    if (rollouts[i].ended) answers.push_back({&items[i / n_answers], sampler->decode(rollouts[i])});
  const std::vector<std::optional<Score>> asked = TRY(rewards->score(answers));
  // An answer that was cut off is none.
  std::vector<std::optional<Score>> scores;
  size_t next = 0;
  for (const Rollout& rollout : rollouts) scores.push_back(rollout.ended ? asked[next++] : Score{});
  return scores;
}

Result<Drawn> GrpoRun::Impl::draw(int64_t at, std::stop_token stop) {
  Drawn d;
  const auto place = static_cast<uint64_t>(settings.task.repeat_first ? 0 : at - 1);
  const auto n = static_cast<uint64_t>(settings.grpo.prompts);
  for (uint64_t i = 0; i < n; ++i) {
    d.items.push_back(task->item(Split::kTrain, static_cast<uint64_t>(settings.task.seed), place * n + i));
    d.prompts.push_back(sampler->encode(d.items.back().prompt));
  }
  d.rollouts = TRY(sampler->draw(d.prompts,
                                 {.n_answers = settings.grpo.answers,
                                  .max_tokens = max_tokens(),
                                  .seed = static_cast<uint64_t>(settings.run.seed),
                                  .first_stream = place * kStreamsPerStep},
                                 stop));
  d.scores = TRY(score(d.items, d.rollouts, static_cast<size_t>(settings.grpo.answers)));
  return d;
}

Result<void> GrpoRun::Impl::probe(const Drawn&, const StepBatch& batch, const LogProbs& old, double kl_view,
                                  int64_t at, const torch::Tensor& rollout, MetricsRow& row) {
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

Result<void> GrpoRun::Impl::update(const StepBatch& batch, const LogProbs& old,
                                   const LogProbs& reference_view, const torch::Tensor& rollout,
                                   const Advantages& advantages, double lr, int64_t at, MetricsRow& row) {
  const torch::Device device(settings.run.device);
  ObjectiveOptions objective = settings.objective;
  if (controller) objective.beta = controller->beta();
  std::vector<double> kept(advantages.kept.begin(), advantages.kept.end());
  const torch::Tensor mask = batch.spread(kept) > 0;
  torch::Tensor advantage = batch.spread(advantages.values);
  if (objective.cvc == Cvc::kShaped)
    advantage = shaped_advantages(advantage, rollout, old.values, objective.cvc_lambda, objective.cvc_delta);
  const ImportanceWeights importance = importance_weights(batch.padded(old.values), batch.padded(rollout),
                                                          batch.padded(mask), settings.importance);
  const ImportanceReport& is = importance.report;
  row.add("is_mean_ratio", is.mean_ratio);
  row.add("is_mean_weight", is.mean_weight);
  row.add("is_ess", is.ess);
  row.add("is_low", is.low);
  row.add("is_high", is.high);
  row.add("is_k3", is.k3);
  row.add("is_chi2_token", is.chi2_token);
  row.add("is_chi2_sequence", is.chi2_sequence);
  row.add("is_refused", is.refused ? 1 : 0);
  row.add("is_alarm", is.alarm ? 1 : 0);
  const torch::Tensor weights = settings.importance.weigh ? batch.flat(importance.weights) : torch::Tensor();

  const double n_kept = mask.sum().item<double>();
  double loss = 0, ratio_max_dev = 0, norm = 0;
  torch::Tensor sums = torch::zeros({kSumCount}, torch::kFloat64);
  bool committed = n_kept > 0;
  for (int64_t tick = 0; committed && tick < settings.grpo.ticks; ++tick) {
    optimizer->zero_grad();
    torch::Tensor tick_sums = torch::zeros({kSumCount}, torch::kFloat64),
                  deviation = torch::zeros({}, torch::kFloat64);
    TRY(views->train(batch, at, old, [&](size_t i, const torch::Tensor& log_probs) {
      const StepBatch::Rows& rows = batch.rows[i];
      const auto part = [&](const torch::Tensor& flat) {
        return flat.defined() ? flat.slice(0, rows.first, rows.first + rows.n).to(device) : torch::Tensor();
      };
      const Objective o = grpo_objective({.log_probs = log_probs,
                                          .old = part(old.values),
                                          .reference = part(reference_view.values),
                                          .rollout = part(rollout),
                                          .advantages = part(advantage),
                                          .weights = part(weights),
                                          .mask = part(mask)},
                                         n_kept, objective);
      tick_sums += o.sums.cpu();
      deviation = torch::max(deviation, o.ratio_max_dev.cpu());
      return o.loss;
    }));
    norm = TRY(views->gradient_norm());
    committed = std::isfinite(norm);
    if (!committed) break;
    optimizer->clip(settings.grpo.clip_norm);
    optimizer->step(lr);
    sums += tick_sums;
    ratio_max_dev = std::max(ratio_max_dev, deviation.item<double>());
  }
  optimizer->zero_grad();
  const int64_t refreshed = TRY(views->end_step(at, committed));
  const auto sum = [&](ObjectiveSum which) { return sums[which].item<double>(); };
  const double n = std::max(1.0, sum(kSumTokens));
  loss = (sum(kSumPolicy) + objective.beta * sum(kSumReferenceKl)) / n;
  if (objective.cvc == Cvc::kCrossEntropy || objective.cvc == Cvc::kSquare)
    loss += objective.cvc_lambda * sum(kSumCvc) / n;
  row.add("loss", loss);
  row.add("ratio_max_dev", ratio_max_dev);
  row.add("clip_fraction", sum(kSumClipped) / n);
  row.add("overflow_tokens", sum(kSumOverflow));
  row.add("grad_norm", norm);
  row.add("beta", objective.beta);
  row.add("lr", lr);
  row.add("tokens_kept", n_kept);
  row.add("skipped", committed ? 0 : 1);
  if (refreshed > 0) row.add("bases_refreshed", static_cast<double>(refreshed));
  return {};
}

Result<MetricsRow> GrpoRun::Impl::do_step(int64_t at, std::stop_token stop) {
  const Clock::time_point start = Clock::now();
  MetricsRow row;
  row.add("step", static_cast<double>(at));
  TRY(sampler->refresh(*policy));
  const double refresh_s = seconds_since(start);
  const Clock::time_point draw_start = Clock::now();
  const Drawn d = TRY(draw(at, stop));
  const double draw_s = seconds_since(draw_start);

  std::vector<std::optional<double>> reward_values;
  double reward = 0, format = 0, declined = 0, wrongly_declined = 0, n_scored = 0, n_answerable = 0,
         cut_off = 0;
  for (size_t i = 0; i < d.scores.size(); ++i) {
    cut_off += d.rollouts[i].ended ? 0 : 1;
    const std::optional<Score>& s = d.scores[i];
    reward_values.push_back(s ? std::optional(s->reward) : std::nullopt);
    if (!s) continue;
    const bool answerable = d.items[i / static_cast<size_t>(settings.grpo.answers)].answerable;
    ++n_scored;
    n_answerable += answerable ? 1 : 0;
    reward += s->reward;
    format += s->format;
    declined += s->declined ? 1 : 0;
    wrongly_declined += s->declined && answerable ? 1 : 0;
  }
  const Advantages advantages = group_advantages(reward_values, settings.grpo.answers, settings.advantage);
  const double n_drawn = static_cast<double>(d.rollouts.size());
  row.add("reward", n_scored > 0 ? reward / n_scored : std::numeric_limits<double>::quiet_NaN());
  row.add("format", n_scored > 0 ? format / n_scored : std::numeric_limits<double>::quiet_NaN());
  row.add("declined", n_scored > 0 ? declined / n_scored : 0);
  row.add("over_refusal", n_answerable > 0 ? wrongly_declined / n_answerable : 0);
  row.add("cut_off", cut_off / n_drawn);
  row.add("failed_rollouts", static_cast<double>(advantages.n_failed));
  row.add("equal_groups",
          static_cast<double>(advantages.n_equal_groups) / static_cast<double>(d.prompts.size()));

  std::vector<TrainedSequence> sequences;
  std::vector<float> rollout_values;
  for (size_t i = 0; i < d.rollouts.size(); ++i) {
    const Rollout& r = d.rollouts[i];
    sequences.push_back({d.prompts[i / static_cast<size_t>(settings.grpo.answers)], r.tokens});
    rollout_values.insert(rollout_values.end(), r.log_probs.begin(), r.log_probs.end());
  }
  const StepBatch batch =
      make_step_batch(sequences, settings.pipeline.micro_batch, torch::Device(settings.run.device));
  const torch::Tensor rollout = torch::tensor(rollout_values);
  row.add("answer_tokens", static_cast<double>(batch.n_tokens) / n_drawn);

  const LogProbs old = TRY(views->log_probs(Views::Of::kPolicy, View::kCodec, batch, at));
  const LogProbs reference_view = TRY(views->log_probs(Views::Of::kReference, View::kCodec, batch, at));
  const double kl_view = average(k3(reference_view.values - old.values));
  row.add("kl_view", kl_view);
  const torch::Tensor gaps = rollout - old.values;
  row.add("gap", average(gaps));
  row.add("gap_sequences", average(batch.padded(gaps).sum(-1) / batch.answer_mask.sum(-1)));
  if (due(settings.probe.every, at)) {
    // The probe looks and touches nothing: what it sends is not counted, and no codec is asked.
    TRY(probe(d, batch, old, kl_view, at, rollout, row));
  }
  double lr = settings.grpo.lr;
  if (at <= settings.grpo.warmup) lr *= static_cast<double>(at) / static_cast<double>(settings.grpo.warmup);
  if (brake) lr *= brake->scale();
  TRY(update(batch, old, reference_view, rollout, advantages, lr, at, row));

  const WireLedger wire = views->take_ledger();
  TRY(wire.check());
  row.add("wire_bits_fwd", wire.bits_per_row(Leg::kForward));
  row.add("wire_bits_bwd", wire.bits_per_row(Leg::kBackward));
  row.add("wire_bytes_fwd", static_cast<double>(wire.total(Leg::kForward).bytes));
  row.add("wire_bytes_bwd", static_cast<double>(wire.total(Leg::kBackward).bytes));
  row.add("wire_bytes_refresh", static_cast<double>(wire.total(SideAccount::kRefresh).bytes));
  row.add("refresh_s", refresh_s);
  row.add("draw_s", draw_s);
  row.add("step_s", seconds_since(start));
  return row;
}

// ---- the run --------------------------------------------------------------------------------------------

Result<void> GrpoRun::Impl::validate(MetricsRow& row, std::stop_token stop) {
  TRY(sampler->refresh(*policy));
  std::vector<Item> items;
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t i = 0; i < settings.validation.items; ++i) {
    items.push_back(
        task->item(Split::kValidation, static_cast<uint64_t>(settings.task.seed), static_cast<uint64_t>(i)));
    prompts.push_back(sampler->encode(items.back().prompt));
  }
  const std::vector<Rollout> rollouts =
      TRY(sampler->draw(prompts, {.n_answers = 1, .max_tokens = max_tokens(), .greedy = true}, stop));
  const std::vector<std::optional<Score>> scores = TRY(score(items, rollouts, 1));
  double right = 0, format = 0, n = 0;
  for (const std::optional<Score>& s : scores)
    if (s) {
      right += s->reward;
      format += s->format;
      ++n;
    }
  row.add("val_accuracy", n > 0 ? right / n : std::numeric_limits<double>::quiet_NaN());
  row.add("val_format", n > 0 ? format / n : std::numeric_limits<double>::quiet_NaN());
  return {};
}

Result<double> GrpoRun::validation_accuracy(std::stop_token stop) {
  MetricsRow row;
  TRY(impl_->validate(row, stop));
  return row.numbers.front().second;
}

Result<void> GrpoRun::run(std::stop_token stop) {
  Impl& r = *impl_;
  while (r.step < r.settings.run.steps) {
    const int64_t at = r.step + 1;
    Result<MetricsRow> row = r.do_step(at, stop);
    if (!row) {
      // The step left no trace: what is saved is the one before.
      if (row.error().code == Code::kCancelled) TRY(r.save());
      return std::move(row).error();
    }
    r.step = at;
    if (r.due(r.settings.validation.every, at)) TRY(r.validate(*row, stop));
    TRY(r.log->write(*row));
    r.observer.on_row(*row);
    if (r.due(r.settings.run.checkpoint_every, at)) TRY(r.save());
  }
  TRY(r.sampler->refresh(*r.policy));
  AtomicFile file = TRY(AtomicFile::create(r.storage, r.directory / "model.gguf"));
  TRY(file.file().append(r.sampler->model_file()));
  return file.commit();
}

}  // namespace forebay::train
