#include "train/fit/fit.h"

#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/parse.h"
#include "train/fit/checkpoint.h"
#include "train/fit/losses.h"
#include "train/fit/metrics.h"
#include "train/nets/device.h"
#include "train/nets/files.h"

namespace forebay::train {
namespace {

using Clock = std::chrono::steady_clock;

Rows on_device(const Rows& rows, const torch::Device& device) {
  return {rows.ids_BT.to(device), rows.targets_BT.to(device), rows.weights_BT.to(device)};
}

Rows slice(const Rows& rows, int64_t first, int64_t n) {
  return {rows.ids_BT.narrow(0, first, n), rows.targets_BT.narrow(0, first, n),
          rows.weights_BT.narrow(0, first, n)};
}

/// Means per token of one step, as they go into the log.
struct StepMeans {
  double next = 0, draft = std::numeric_limits<double>::quiet_NaN(), auxiliary = 0, gradient_norm = 0;
};

class Run {
 public:
  Run(Net& net, const FitData& data, const FitOptions& options, const FitPlace& place,
      const torch::Device& device)
      : net_(net),
        data_(data),
        options_(options),
        place_(place),
        device_(device),
        packer_(data.train, options.row_tokens, options.packing, options.seed, data.padding) {}

  Result<FitReport> run(const std::stop_token& stop) {
    TRY(prepare());
    const int64_t steps = options_.schedule.steps;
    Progress progress("train", static_cast<uint64_t>(steps),
                      {.style = place_.progress, .unit = ProgressUnit::kItems});
    FitReport report{.steps_done = step_};
    while (step_ < steps) {
      const Clock::time_point start = Clock::now();
      const StepMeans means = train_step(step_ + 1);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (!std::isfinite(means.next) || !std::isfinite(means.gradient_norm))
        return Error{Code::kInternal,
                     fmt::format("step {}: the loss is {} and the gradient's norm {}, wanted finite "
                                 "numbers (the last checkpoint is of step {})",
                                 step_ + 1, means.next, means.gradient_norm, checkpoint_step_)};
      ++step_;
      report.steps_done = step_;
      report.last_loss = means.next;
      MetricsRow row = row_of(means, seconds);
      const bool last = step_ == steps;
      if (data_.validation && options_.validate_every > 0 && (step_ % options_.validate_every == 0 || last)) {
        report.validation_loss = validate(row);
      }
      TRY(log_->write(row));
      progress.set_detail(fmt::format("loss {:.3f}  {:.0f} tokens/s", means.next, row_tokens() / seconds));
      progress.set(static_cast<uint64_t>(step_));

      report.was_stopped = stop.stop_requested() || step_ == options_.stop_after;
      if (last || report.was_stopped ||
          (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0))
        TRY(checkpoint());
      if (options_.save_every > 0 && step_ % options_.save_every == 0)
        TRY(save_net(place_.storage, place_.directory / fmt::format("step-{:06}", step_), net_));
      if (report.was_stopped) break;
    }
    progress.finish();
    report.note = draw();
    return report;
  }

 private:
  Path state_path() const { return place_.directory / "state.safetensors"; }
  Path log_path() const { return place_.directory / "metrics.jsonl"; }
  double row_tokens() const { return static_cast<double>(options_.batch * options_.row_tokens); }

  std::map<std::string, torch::Tensor> state_tensors() const {
    std::map<std::string, torch::Tensor> tensors = adam_->state();
    for (const auto& item : net_.named_parameters()) tensors["model." + item.key()] = item.value();
    return tensors;
  }

  Result<void> prepare() {
    if (device_.is_cuda() && options_.precision == Precision::kBF16)
      at::globalContext().setFloat32MatmulPrecision("high");
    TRY(place_.storage.make_directory(place_.directory));
    const bool has_state = place_.storage.exists(state_path());
    if (has_state && !place_.resume)
      return Error{Code::kInvalidArgument,
                   fmt::format("{} holds a run already: go on with --resume, or take another "
                               "directory",
                               place_.directory.string())};
    // One that was stopped before its first state begins anew; where there is nothing, the place is wrong.
    if (place_.resume && !has_state && !place_.storage.exists(log_path()))
      return Error{Code::kNotFound, fmt::format("{}: no run to go on from", place_.directory.string())};
    torch::manual_seed(static_cast<int64_t>(options_.seed));
    net_.to(device_);
    net_.set_precision(options_.precision);
    net_.set_auxiliary_weights(options_.auxiliary);
    adam_.emplace(net_, options_.adam);
    data_hash_ = fmt::format("{:016x}", data_.train.hash());
    if (has_state)
      TRY(restore());
    else
      TRY(write_recipe());
    log_.emplace(TRY(MetricsLog::open(place_.storage, log_path())));
    MetricsRow row;
    row.texts.emplace_back("event", has_state ? "resume" : "start");
    row.texts.emplace_back("data", data_hash_);
    row.add("at_step", static_cast<double>(step_));
    row.add("parameters", static_cast<double>(n_parameters()));
    row.add("train_tokens", static_cast<double>(data_.train.ids.size()));
    row.add("rows_per_epoch", static_cast<double>(packer_.rows_in_first_epoch()));
    return log_->write(row);
  }

  Result<void> write_recipe() {
    AtomicFile file = TRY(AtomicFile::create(place_.storage, place_.directory / "recipe.toml"));
    TRY(file.file().append(std::as_bytes(std::span(place_.recipe))));
    return file.commit();
  }

  Result<void> restore() {
    const auto facts = TRY(load_state(place_.storage, state_path(), state_tensors()));
    const auto fact = [&](const char* name) {
      const auto at = facts.find(name);
      return at == facts.end() ? std::string() : at->second;
    };
    const auto differs = [&](std::string_view what) {
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: the run there was made with {}; resume with the same, or start another",
                               place_.directory.string(), what)};
    };
    if (fact("data") != data_hash_)
      return differs(fmt::format("other data (hash {}, now {})", fact("data"), data_hash_));
    if (fact("recipe") != place_.recipe) return differs("another recipe (recipe.toml there has it)");
    step_ = TRY(parse_int(fact("step"), 0, std::numeric_limits<int64_t>::max()));
    adam_->set_n_steps(step_);
    checkpoint_step_ = step_;
    return {};
  }

  Result<void> checkpoint() {
    TRY(save_state(place_.storage, state_path(),
                   {state_tensors(),
                    {{"step", std::to_string(step_)}, {"data", data_hash_}, {"recipe", place_.recipe}}}));
    checkpoint_step_ = step_;
    return {};
  }

  StepMeans train_step(int64_t step) {
    const Rows rows = on_device(packer_.rows((step - 1) * options_.batch, options_.batch), device_);
    const double n_next = std::max(1.0, rows.weights_BT.sum().item<double>());
    const bool with_draft = options_.mtp > 0 && options_.row_tokens > 1;
    const double n_draft =
        with_draft ? std::max(1.0, draft_weights(rows.weights_BT).sum().item<double>()) : 1.0;
    net_.set_dense_attention(step <= options_.dense_steps);
    adam_->zero_grad();
    const int64_t each =
        options_.micro_batch > 0 ? std::min(options_.micro_batch, options_.batch) : options_.batch;
    torch::Tensor next, draft, auxiliary;
    const auto add_to = [](torch::Tensor& sum, const torch::Tensor& term) {
      sum = sum.defined() ? sum + term.detach() : term.detach();
    };
    for (int64_t first = 0; first < options_.batch; first += each) {
      const int64_t n = std::min(each, options_.batch - first);
      const Losses losses = losses_of(net_, slice(rows, first, n), with_draft);
      torch::Tensor loss = losses.next / n_next;
      add_to(next, loss);
      if (losses.draft.defined()) {
        const torch::Tensor term = losses.draft / n_draft;
        add_to(draft, term);
        loss = loss + options_.mtp * term;
      }
      if (losses.auxiliary.defined()) {
        const torch::Tensor term =
            losses.auxiliary * (static_cast<double>(n) / static_cast<double>(options_.batch));
        add_to(auxiliary, term);
        loss = loss + term;
      }
      loss.backward();
    }
    const torch::Tensor norm = adam_->clip(options_.clip);
    adam_->step(options_.schedule.at(step));
    StepMeans means;
    means.next = next.item<double>();
    if (draft.defined()) means.draft = draft.item<double>();
    if (auxiliary.defined()) means.auxiliary = auxiliary.item<double>();
    means.gradient_norm = norm.item<double>();
    return means;
  }

  MetricsRow row_of(const StepMeans& means, double seconds) const {
    MetricsRow row;
    row.add("step", static_cast<double>(step_));
    row.add("loss", means.next);
    if (!std::isnan(means.draft)) row.add("draft_loss", means.draft);
    if (means.auxiliary != 0) row.add("auxiliary_loss", means.auxiliary);
    row.add("gradient_norm", means.gradient_norm);
    row.add("lr", options_.schedule.at(step_));
    row.add("tokens", row_tokens() * static_cast<double>(step_));
    row.add("tokens_per_s", row_tokens() / seconds);
    row.add("step_s", seconds);
    return row;
  }

  /// The mean per token over the first rows of the validation documents in their own order.
  double validate(MetricsRow& row) {
    const torch::NoGradGuard no_gradients;
    Packer packer(*data_.validation, options_.row_tokens, options_.packing, /*seed=*/0, data_.padding);
    const int64_t n_rows = std::min(options_.validation_rows, packer.rows_in_first_epoch());
    const bool with_draft = options_.mtp > 0 && options_.row_tokens > 1;
    double next = 0, draft = 0, n_next = 0, n_draft = 0;
    net_.set_dense_attention(step_ <= options_.dense_steps);
    for (int64_t first = 0; first < n_rows; first += options_.batch) {
      const Rows rows = on_device(packer.rows(first, std::min(options_.batch, n_rows - first)), device_);
      const Losses losses = losses_of(net_, rows, with_draft);
      next += losses.next.item<double>();
      n_next += rows.weights_BT.sum().item<double>();
      if (!losses.draft.defined()) continue;
      draft += losses.draft.item<double>();
      n_draft += draft_weights(rows.weights_BT).sum().item<double>();
    }
    const double mean = next / std::max(1.0, n_next);
    row.add("val_loss", mean);
    if (n_draft > 0) row.add("val_draft_loss", draft / n_draft);
    return mean;
  }

  int64_t n_parameters() const {
    int64_t n = 0;
    for (const torch::Tensor& parameter : net_.parameters()) n += parameter.numel();
    return n;
  }

  std::string draw() const {
    const std::pair<std::string, std::string> curves[] = {{"loss", "training"},
                                                          {"val_loss", "validation"},
                                                          {"draft_loss", "draft head"},
                                                          {"val_draft_loss", "draft head, validation"}};
    const Result<void> drawn = draw_curves(place_.storage, log_path(), place_.directory / "loss.png", curves);
    return drawn ? "" : "no loss.png: " + drawn.error().message;
  }

  Net& net_;
  const FitData& data_;
  const FitOptions& options_;
  const FitPlace& place_;
  const torch::Device device_;
  Packer packer_;
  std::optional<AdamW> adam_;
  std::optional<MetricsLog> log_;
  std::string data_hash_;
  int64_t step_ = 0;             // done
  int64_t checkpoint_step_ = 0;  // of the state on the disk
};

}  // namespace

Result<FitReport> fit(Net& net, const FitData& data, const FitOptions& options, const FitPlace& place,
                      std::stop_token stop) {
  const torch::Device device = TRY(device_named("train.device", options.device));
  try {
    Run run(net, data, options, place, device);
    Result<FitReport> report = run.run(stop);
    net.to(torch::kCPU);
    return report;
  } catch (const c10::Error& error) {
    return Error{Code::kInternal, fmt::format("libtorch: {}", error.what_without_backtrace())};
  }
}

}  // namespace forebay::train
