#include "train/pipeline/local_runner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "train/pipeline/boundary.h"
#include "train/pipeline/stage.h"
#include "train/wire/basis.h"

namespace forebay::train {
namespace {

class LocalRunner : public Runner {
 public:
  LocalRunner(Net& net, LocalPipeline pipeline, const std::vector<StageSpan>& spans)
      : net_(net), pipeline_(std::move(pipeline)), tied_(net) {
    for (const StageSpan& span : spans) stages_.emplace_back(net, span, tied_);
  }

  bool has_head() const override { return true; }

  Result<void> forward(std::span<const MicroBatch> batches, View view, int64_t step,
                       const std::function<void(size_t, const torch::Tensor&)>& sink) override {
    return catching([&] {
      const torch::NoGradGuard no_gradients;
      Rows rows;
      for (size_t i = 0; i < batches.size(); ++i) {
        torch::Tensor x_BTW;
        torch::Tensor unused;
        for (size_t stage = 0; stage < stages_.size(); ++stage) {
          if (stage > 0) x_BTW = hand_on(stage - 1, x_BTW, view, step, i, rows, &unused);
          x_BTW = stages_[stage].infer(batches[i].ids_BT, x_BTW);
        }
        sink(i, x_BTW);
        rows.first += batches[i].ids_BT.numel();
      }
    });
  }

  Result<void> train(std::span<const MicroBatch> batches, int64_t step,
                     const std::function<torch::Tensor(size_t, const torch::Tensor&)>& loss,
                     View view) override {
    Result<void> done = catching([&] {
      tied_.begin();
      Rows rows;
      for (size_t i = 0; i < batches.size(); ++i) {
        std::vector<torch::Tensor> saved(stages_.size());
        torch::Tensor x_BTW;
        for (size_t stage = 0; stage < stages_.size(); ++stage) {
          if (stage > 0) {
            harvest(stage - 1, x_BTW, view, step, i, rows);
            x_BTW = hand_on(stage - 1, x_BTW, view, step, i, rows, &saved[stage - 1]);
          }
          x_BTW = stages_[stage].forward(batches[i].ids_BT, x_BTW);
        }
        torch::Tensor gradient_BTW =
            stages_.back().backward_loss([&](const torch::Tensor& logits) { return loss(i, logits); });
        for (size_t stage = stages_.size() - 1; stage-- > 0;)
          gradient_BTW =
              stages_[stage].backward(hand_back(stage, gradient_BTW, view, step, i, rows, saved[stage]));
        rows.first += batches[i].ids_BT.numel();
      }
      tied_.end();
    });
    for (Stage& stage : stages_) stage.discard();
    return done;
  }

  Result<double> gradient_norm() override {
    double norm = 0;
    TRY(catching([&] { norm = norm_of(gradient_squares(net_)); }));
    return norm;
  }

 private:
  struct Rows {
    int64_t first = 0;  // of the micro-batch at hand, within the step
  };

  WireKey key(size_t boundary, int64_t step, size_t micro_batch, const Rows& rows) const {
    return {.seed = pipeline_.seed,
            .step = step,
            .boundary = static_cast<int64_t>(boundary),
            .micro_batch = static_cast<int64_t>(micro_batch),
            .first_row = rows.first};
  }

  Codec* codec(size_t boundary, View view) const {
    return view == View::kDense || pipeline_.codecs.empty() ? nullptr : pipeline_.codecs[boundary];
  }

  /// Bases learn from the rows of the passes that are trained through them, and from no others.
  void harvest(size_t boundary, const torch::Tensor& x_BTW, View view, int64_t step, size_t micro_batch,
               const Rows& rows) {
    Codec* const codec = this->codec(boundary, view);
    if (codec != nullptr && codec->basis() != nullptr)
      codec->basis()->harvest(as_rows(x_BTW), key(boundary, step, micro_batch, rows));
  }

  torch::Tensor hand_on(size_t boundary, const torch::Tensor& x_BTW, View view, int64_t step,
                        size_t micro_batch, const Rows& rows, torch::Tensor* saved) {
    const torch::NoGradGuard no_gradients;
    Codec* const codec = this->codec(boundary, view);
    if (codec == nullptr) return x_BTW;
    const torch::Tensor x_NW = as_rows(x_BTW);
    count(Leg::kForward, step, boundary, x_NW, *codec);
    return as_batch(codec->view(x_NW, key(boundary, step, micro_batch, rows), saved), x_BTW);
  }

  torch::Tensor hand_back(size_t boundary, const torch::Tensor& g_BTW, View view, int64_t step,
                          size_t micro_batch, const Rows& rows, const torch::Tensor& saved) {
    const torch::NoGradGuard no_gradients;
    Codec* const codec = this->codec(boundary, view);
    if (codec == nullptr) return g_BTW;
    const torch::Tensor g_NW = as_rows(g_BTW);
    count(Leg::kBackward, step, boundary, g_NW, *codec);
    return as_batch(codec->gradient_view(g_NW, key(boundary, step, micro_batch, rows), saved), g_BTW);
  }

  void count(Leg leg, int64_t step, size_t boundary, const torch::Tensor& rows_NW, const Codec& codec) {
    if (!pipeline_.tap) return;
    const int64_t n_rows = rows_NW.size(0), width = rows_NW.size(1);
    const double bits_per_row = leg == Leg::kForward ? codec.forward_bits(width) : codec.backward_bits(width);
    pipeline_.tap({.step = step,
                   .boundary = static_cast<int64_t>(boundary),
                   .leg = leg,
                   .n_rows = n_rows,
                   .logical_bits = bits_per_row * static_cast<double>(n_rows),
                   .bytes = static_cast<int64_t>(codec.payload_bytes(n_rows, width, leg))});
  }

  Net& net_;
  LocalPipeline pipeline_;
  TiedGradients tied_;
  std::vector<Stage> stages_;
};

}  // namespace

Result<std::unique_ptr<Runner>> make_local_runner(Net& net, LocalPipeline pipeline) {
  const StageSpan& span = net.span();
  if (!span.has_embedding || !span.has_head)
    return Error{Code::kInvalidArgument, "a part of a model: a pipeline in one process needs all of it"};
  const std::vector<StageSpan> spans = TRY(split_blocks(span.last_block, pipeline.n_stages));
  if (!pipeline.codecs.empty() && pipeline.codecs.size() != spans.size() - 1)
    return Error{Code::kInvalidArgument, fmt::format("{} codecs for {} boundaries: one each, or none",
                                                     pipeline.codecs.size(), spans.size() - 1)};
  return std::unique_ptr<Runner>(std::make_unique<LocalRunner>(net, std::move(pipeline), spans));
}

}  // namespace forebay::train
