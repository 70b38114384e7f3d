#include "train/grpo/warm_start.h"

#include <cmath>

#include <fmt/format.h>

#include "train/fit/adamw.h"
#include "train/grpo/learner.h"
#include "train/grpo/step_batch.h"

namespace forebay::train {

Result<void> warm_start(Net& net, Views& views, Drawer* drawer, Team& team, const GrpoSettings& settings,
                        const std::function<void(int64_t, double)>& progress, std::stop_token stop) {
  AdamW optimizer(net, {.weight_decay = settings.grpo.weight_decay});
  for (int64_t step = 0; step < settings.sft.steps; ++step) {
    if (TRY(team.any("stop warm start", stop.stop_requested())))
      return Error{Code::kCancelled, "interrupted"};
    Bytes mine;
    if (drawer != nullptr) mine = TRY(drawer->solved(step)).to_bytes();
    const Solved solved = TRY(Solved::from_bytes(TRY(team.share(std::move(mine), 0))));
    const std::vector<TrainedSequence> sequences = solved.sequences();
    const StepBatch batch = make_step_batch(sequences, settings.sft.batch, net.parameters()[0].device());
    optimizer.zero_grad();
    torch::Tensor value = torch::zeros({1}, torch::kFloat64);
    const LogProbs dense{.values = {}, .epoch = views.epoch(View::kDense, step)};
    TRY(views.train(
        batch, step, dense,
        [&](size_t, const torch::Tensor& log_probs) {
          const torch::Tensor loss = -log_probs.mean();
          value[0] = loss.detach().cpu().to(torch::kFloat64);
          return loss;
        },
        View::kDense));
    TRY(team.share(value, team.head_rank()));
    const double loss = value.item<double>();
    if (!std::isfinite(loss))
      return Error{Code::kCorrupt, fmt::format("sft: loss {} at step {}", loss, step + 1)};
    const double norm = TRY(views.gradient_norm());
    clip_gradients(net, norm, settings.grpo.clip_norm);
    optimizer.step(settings.sft.lr);
    if (team.leads()) progress(step + 1, loss);
  }
  optimizer.zero_grad();
  TRY(views.take_ledger());  // no step's
  return {};
}

}  // namespace forebay::train
