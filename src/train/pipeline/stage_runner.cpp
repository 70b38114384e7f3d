#include "train/pipeline/stage_runner.h"

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "train/comm/tensors.h"
#include "train/pipeline/boundary.h"
#include "train/pipeline/neighbours.h"
#include "train/pipeline/schedule.h"
#include "train/pipeline/shared_gradients.h"
#include "train/pipeline/stage.h"
#include "train/pipeline/stage_layout.h"

namespace forebay::train {
namespace {

class DistributedRunner : public StageRunner {
 public:
  DistributedRunner(Net& net, Comm& pipe, StagePipeline pipeline, StageLayout layout)
      : net_(net),
        pipe_(pipe),
        pipeline_(std::move(pipeline)),
        layout_(std::move(layout)),
        tied_(net),
        stage_(net, net.span(), tied_),
        shared_(net, pipe, layout_),
        neighbours_(pipe, pipeline_, net.boundary_width(),
                    net.parameters().empty() ? torch::Device(torch::kCPU) : net.parameters()[0].device(),
                    times_) {}

  bool has_head() const override { return net_.span().has_head; }

  Result<void> forward(std::span<const MicroBatch> batches, View view, int64_t step,
                       const std::function<void(size_t, const torch::Tensor&)>& sink) override {
    const Timed total(times_.total);
    return guarded([&]() -> Result<void> {
      const torch::NoGradGuard no_gradients;
      neighbours_.begin(batches, step, view, Pass::kForward);
      for (size_t i = 0; i < batches.size(); ++i) {
        torch::Tensor x_BTW;
        if (!is_first()) x_BTW = TRY(neighbours_.receive(i));
        {
          const Timed compute(times_.compute);
          x_BTW = stage_.infer(batches[i].ids_BT, x_BTW);
          if (has_head()) sink(i, x_BTW);
        }
        if (!has_head()) TRY(neighbours_.hand_on(i, x_BTW));
      }
      return {};
    });
  }

  Result<void> train(std::span<const MicroBatch> batches, int64_t step,
                     const std::function<torch::Tensor(size_t, const torch::Tensor&)>& loss,
                     View view) override {
    const Timed total(times_.total);
    Result<void> done = guarded([&]() -> Result<void> {
      neighbours_.begin(batches, step, view, Pass::kTrain);
      shared_.begin();
      tied_.begin();
      for (const StageWork& work : one_forward_one_backward(pipe_.rank(), pipe_.size(), batches.size())) {
        if (work.kind == StageWork::Kind::kForward)
          TRY(forward_one(batches, work.micro_batch));
        else
          TRY(backward_one(work.micro_batch, loss));
      }
      tied_.end();
      return shared_.end(view, step);
    });
    stage_.discard();
    return done;
  }

  Result<double> gradient_norm() override;
  Result<std::map<std::string, torch::Tensor>> gather_parameters() override;

 private:
  bool is_first() const { return net_.span().has_embedding; }

  /// Runs `work`; what it throws or returns ends the run for everyone.
  template <typename Work>
  Result<void> guarded(Work&& work) {
    Result<void> done;
    const Result<void> caught = catching([&] { done = work(); });
    if (caught && done) return {};
    const Error& error = caught ? done.error() : caught.error();
    if (pipe_.control().failure()) return error;  // everyone knows
    const std::string message = fmt::format("rank {}: {}", pipe_.rank(), error.message);
    pipe_.abort(message);
    return Error{error.code, message};
  }

  Result<void> forward_one(std::span<const MicroBatch> batches, size_t i) {
    torch::Tensor x_BTW;
    if (!is_first()) x_BTW = TRY(neighbours_.receive(i));
    {
      const Timed compute(times_.compute);
      x_BTW = stage_.forward(batches[i].ids_BT, x_BTW);
    }
    return has_head() ? Result<void>() : neighbours_.hand_on(i, x_BTW);
  }

  Result<void> backward_one(size_t i,
                            const std::function<torch::Tensor(size_t, const torch::Tensor&)>& loss) {
    torch::Tensor gradient_BTW;
    if (!has_head()) gradient_BTW = TRY(neighbours_.receive_back(i));
    {
      const Timed compute(times_.compute), backward(times_.backward);
      gradient_BTW = has_head()
                         ? stage_.backward_loss([&](const torch::Tensor& logits) { return loss(i, logits); })
                         : stage_.backward(gradient_BTW);
    }
    return is_first() ? Result<void>() : neighbours_.hand_back(i, gradient_BTW);
  }

  Net& net_;
  Comm& pipe_;
  const StagePipeline pipeline_;
  const StageLayout layout_;
  TiedGradients tied_;  // of a pipeline of one
  Stage stage_;
  SharedGradients shared_;
  Neighbours neighbours_;
};

Result<double> DistributedRunner::gradient_norm() {
  double norm = 0;
  TRY(guarded([&]() -> Result<void> {
    std::string mine;
    for (const auto& [name, square] : gradient_squares(net_)) mine += fmt::format("{} {:a}\n", name, square);
    const std::vector<Bytes> all =
        TRY(pipe_.control().gather("gradient norm", Bytes(mine.begin(), mine.end())));
    std::vector<std::pair<std::string, double>> squares;
    for (const Bytes& bytes : all) {
      const std::string text(bytes.begin(), bytes.end());
      for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
        const size_t gap = text.find(' ', at);
        squares.emplace_back(text.substr(at, gap - at), std::strtod(text.c_str() + gap, nullptr));
      }
    }
    norm = norm_of(std::move(squares));
    return {};
  }));
  return norm;
}

Result<std::map<std::string, torch::Tensor>> DistributedRunner::gather_parameters() {
  std::map<std::string, torch::Tensor> whole;
  TRY(guarded([&]() -> Result<void> {
    const torch::NoGradGuard no_gradients;
    const uint64_t tag = message_tag(Pass::kGather, View::kDense, Leg::kBackward, 0, 0);
    // What several stages hold, the first of them speaks for.
    std::map<std::string, torch::Tensor> mine;
    for (const auto& parameter : net_.named_parameters())
      if (!net_.is_copy(parameter.key())) mine[parameter.key()] = parameter.value().detach().to(torch::kCPU);
    if (pipe_.rank() > 0) return send_tensors(pipe_, 0, tag, mine);
    whole = std::move(mine);
    for (int rank = 1; rank < pipe_.size(); ++rank) {
      std::map<std::string, torch::Tensor> part = TRY(recv_tensors(pipe_, rank, tag));
      whole.merge(part);
    }
    return {};
  }));
  return whole;
}

}  // namespace

Result<std::unique_ptr<StageRunner>> make_stage_runner(Net& net, Comm& pipe, StagePipeline pipeline) {
  const auto n_boundaries = static_cast<size_t>(pipe.size()) - 1;
  if (!pipeline.codecs.empty() && pipeline.codecs.size() != n_boundaries)
    return Error{Code::kInvalidArgument, fmt::format("{} codecs for {} boundaries: one each, or none",
                                                     pipeline.codecs.size(), n_boundaries)};
  StageLayout layout = TRY(agree_on_layout(net, pipe));
  return std::unique_ptr<StageRunner>(
      std::make_unique<DistributedRunner>(net, pipe, std::move(pipeline), std::move(layout)));
}

}  // namespace forebay::train
