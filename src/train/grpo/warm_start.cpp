#include "train/grpo/warm_start.h"

#include <cmath>

#include <fmt/format.h>

#include "tokenizer/tokenizer.h"
#include "train/fit/adamw.h"
#include "train/grpo/step_batch.h"

namespace forebay::train {
namespace {

// Items of the warm start and of GRPO are draws of two seeds.
constexpr uint64_t kWarmStartSeed = 0x57a27;

}  // namespace

Result<void> warm_start(Net& net, const Task& task, const Sampler& words, const GrpoSettings& settings,
                        const std::function<void(int64_t, double)>& progress, std::stop_token stop) {
  const Tokenizer& tokenizer = words.tokenizer();
  if (!tokenizer.eos())
    return Error{Code::kUnsupported, "sft: the vocabulary has no token that ends an answer"};
  AdamW optimizer(net, {.weight_decay = settings.grpo.weight_decay});
  const auto n = static_cast<uint64_t>(settings.sft.batch);
  for (int64_t step = 0; step < settings.sft.steps; ++step) {
    if (stop.stop_requested()) return Error{Code::kCancelled, "interrupted"};
    std::vector<std::vector<int32_t>> prompts, answers;
    std::vector<TrainedSequence> sequences;
    for (uint64_t i = 0; i < n; ++i) {
      const Item item = task.item(Split::kTrain, static_cast<uint64_t>(settings.task.seed) ^ kWarmStartSeed,
                                  static_cast<uint64_t>(step) * n + i);
      prompts.push_back(words.encode(item.prompt));
      answers.push_back(tokenizer.encode(item.answer));
      answers.back().push_back(*tokenizer.eos());
    }
    for (size_t i = 0; i < prompts.size(); ++i) sequences.push_back({prompts[i], answers[i]});
    const StepBatch batch =
        make_step_batch(sequences, settings.sft.batch, torch::Device(settings.run.device));
    optimizer.zero_grad();
    const torch::Tensor loss = -row_log_probs(net.logits(batch.micro[0].ids_BT), batch.rows[0]).mean();
    loss.backward();
    const double value = loss.item<double>();
    if (!std::isfinite(value))
      return Error{Code::kCorrupt, fmt::format("sft: loss {} at step {}", value, step + 1)};
    optimizer.clip(settings.grpo.clip_norm);
    optimizer.step(settings.sft.lr);
    progress(step + 1, value);
  }
  optimizer.zero_grad();
  return {};
}

}  // namespace forebay::train
