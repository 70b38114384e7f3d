/// Rows and gradients of micro-batches between a stage and the ones before and behind it, as a codec's bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/comm/comm.h"
#include "train/pipeline/runner.h"
#include "train/pipeline/stage_runner.h"
#include "train/wire/codec.h"

namespace forebay::train {

/// What a message is, so that a process that fell out of step is noticed at once.
enum class Pass : uint64_t { kForward = 1, kTrain = 2, kShared = 3, kGather = 4 };
uint64_t message_tag(Pass pass, View view, Leg leg, int64_t step, size_t micro_batch);

/// f32 numbers as a message, and back in a shape and a place. Errors: kCorrupt for another number of bytes.
Bytes bytes_of(const torch::Tensor& values);
Result<torch::Tensor> tensor_of(const Bytes& bytes, torch::IntArrayRef sizes, torch::Device device);

/// Adds the time it lives to a sum of seconds.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum), start_(Clock::now()) {}
  ~Timed() { sum_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Timed(const Timed&) = delete;

 private:
  double& sum_;
  Clock::time_point start_;
};

/// Confined. `pipe`, `pipeline` and `times` must outlive it. Boundary b is behind rank b. Errors: of Comm,
/// and kCorrupt for a payload that is none.
class Neighbours {
 public:
  Neighbours(Comm& pipe, const StagePipeline& pipeline, int64_t width, torch::Device device,
             PipelineTimes& times)
      : pipe_(pipe), pipeline_(pipeline), width_(width), device_(device), times_(times) {}

  /// Before a batch, whose micro-batches the calls below name by number.
  void begin(std::span<const MicroBatch> batches, int64_t step, View view, Pass pass);

  /// Rows from the stage before, [B, T, width].
  Result<torch::Tensor> receive(size_t i);
  Result<void> hand_on(size_t i, const torch::Tensor& x_BTW);
  /// The gradient of what was handed on.
  Result<torch::Tensor> receive_back(size_t i);
  Result<void> hand_back(size_t i, const torch::Tensor& g_BTW);

 private:
  int64_t before() const { return pipe_.rank() - 1; }  // boundaries beside this stage
  int64_t after() const { return pipe_.rank(); }
  Codec* codec(int64_t boundary) const;
  WireKey key(int64_t boundary, size_t i) const;
  std::vector<int64_t> sizes_of(size_t i) const;
  int64_t n_rows(size_t i) const { return batches_[i].ids_BT.numel(); }
  WireTransfer transfer(int64_t boundary, Leg leg, size_t i, const Payload& payload) const;
  Result<void> send(int to, int64_t boundary, Leg leg, size_t i, const Codec* codec, Payload payload);
  Result<Payload> take(int from, int64_t boundary, Leg leg, size_t i, const Codec* codec);

  Comm& pipe_;
  const StagePipeline& pipeline_;
  const int64_t width_;
  const torch::Device device_;
  PipelineTimes& times_;

  // Of the batch at hand.
  std::span<const MicroBatch> batches_;
  int64_t step_ = 0;
  View view_ = View::kCodec;
  Pass pass_ = Pass::kForward;
  std::vector<int64_t> first_rows_;
  std::vector<torch::Tensor> saved_before_, saved_after_;  // what links a codec's two legs, by micro-batch
};

}  // namespace forebay::train
