#include "train/grpo/step_batch.h"

#include <algorithm>

#include "core/ensure.h"
#include "train/grpo/objective.h"

namespace forebay::train {

torch::Tensor StepBatch::padded(const torch::Tensor& flat) const {
  return torch::zeros(answer_mask.sizes(), flat.options()).masked_scatter(answer_mask, flat);
}

torch::Tensor StepBatch::spread(std::span<const double> per_sequence) const {
  torch::Tensor values = torch::empty({n_tokens}, torch::kFloat32);
  float* at = values.data_ptr<float>();
  for (size_t s = 0; s < per_sequence.size(); ++s)
    at = std::fill_n(at, n_answer_tokens[s], static_cast<float>(per_sequence[s]));
  return values;
}

StepBatch make_step_batch(std::span<const TrainedSequence> sequences, int64_t per_micro,
                          torch::Device device) {
  StepBatch batch;
  int64_t longest_answer = 1;
  for (const TrainedSequence& s : sequences) {
    ENSURE(!s.prompt.empty() && !s.answer.empty(), "a sequence without prompt or answer");
    batch.n_answer_tokens.push_back(static_cast<int64_t>(s.answer.size()));
    longest_answer = std::max(longest_answer, batch.n_answer_tokens.back());
  }
  batch.answer_mask =
      torch::arange(longest_answer).unsqueeze(0) < torch::tensor(batch.n_answer_tokens).unsqueeze(1);

  const auto per = static_cast<size_t>(per_micro);
  for (size_t first = 0; first < sequences.size(); first += per) {
    const std::span<const TrainedSequence> some =
        sequences.subspan(first, std::min(per, sequences.size() - first));
    size_t longest = 0;
    for (const TrainedSequence& s : some) longest = std::max(longest, s.prompt.size() + s.answer.size());
    torch::Tensor ids =
        torch::zeros({static_cast<int64_t>(some.size()), static_cast<int64_t>(longest)}, torch::kInt64);
    std::vector<int64_t> index, targets;
    for (size_t b = 0; b < some.size(); ++b) {
      int64_t* row = ids.data_ptr<int64_t>() + b * longest;
      std::ranges::copy(some[b].prompt, row);
      std::ranges::copy(some[b].answer, row + some[b].prompt.size());
      // The row before a token is the one that is about it.
      for (size_t i = 0; i < some[b].answer.size(); ++i) {
        index.push_back(static_cast<int64_t>(b * longest + some[b].prompt.size() + i) - 1);
        targets.push_back(some[b].answer[i]);
      }
    }
    const auto n = static_cast<int64_t>(index.size());
    batch.micro.push_back({ids.to(device)});
    batch.rows.push_back(
        {torch::tensor(index).to(device), torch::tensor(targets).to(device), batch.n_tokens, n});
    batch.n_tokens += n;
  }
  return batch;
}

torch::Tensor row_log_probs(const torch::Tensor& logits_BTV, const StepBatch::Rows& rows) {
  const torch::Tensor chosen =
      logits_BTV.reshape({-1, logits_BTV.size(-1)}).index_select(0, rows.index).to(torch::kFloat32);
  return token_log_probs(chosen, rows.targets);
}

}  // namespace forebay::train
