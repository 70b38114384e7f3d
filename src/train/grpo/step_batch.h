/// The answers of a step as tensors: micro-batches for the pipeline, and everything that is known per answer
/// token, in the order of the sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/torch.h>

#include "train/pipeline/runner.h"

namespace forebay::train {

/// One sequence: a prompt and what came after it.
struct TrainedSequence {
  std::span<const int32_t> prompt;
  std::span<const int32_t> answer;
};

/// N: answer tokens of the step; S: sequences.
struct StepBatch {
  /// Which rows of a micro-batch's logits, flattened to [B * T, V], are about answer tokens.
  struct Rows {
    torch::Tensor index;    // [n] int64, on the device
    torch::Tensor targets;  // [n] int64, on the device
    int64_t first = 0;      // of N
    int64_t n = 0;
  };
  std::vector<MicroBatch> micro;
  std::vector<Rows> rows;                // per micro-batch
  torch::Tensor answer_mask;             // [S, longest answer] bool, CPU: row-major order is the order of N
  std::vector<int64_t> n_answer_tokens;  // per sequence
  int64_t n_tokens = 0;                  // N

  /// [N] -> [S, longest], 0 where there is no token; and back.
  torch::Tensor padded(const torch::Tensor& flat) const;
  torch::Tensor flat(const torch::Tensor& padded) const { return padded.masked_select(answer_mask); }
  /// One value per sequence, for each of its tokens: [N] f32.
  torch::Tensor spread(std::span<const double> per_sequence) const;
};

/// `per_micro` sequences go together, in the order given. Sequences have a prompt and an answer of at least
/// one token.
StepBatch make_step_batch(std::span<const TrainedSequence> sequences, int64_t per_micro,
                          torch::Device device);

/// log softmax at the targets of one micro-batch's rows: [n] f32, with the gradient of `logits`.
torch::Tensor row_log_probs(const torch::Tensor& logits_BTV, const StepBatch::Rows& rows);

}  // namespace forebay::train
