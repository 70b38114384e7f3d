#include "train/pipeline/stage_runner.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "train/pipeline/boundary.h"
#include "train/pipeline/schedule.h"
#include "train/pipeline/stage.h"
#include "train/pipeline/stage_layout.h"
#include "train/wire/basis.h"

namespace forebay::train {
namespace {

/// What a message is, so that a process that fell out of step is noticed at once.
enum class Pass : uint64_t { kForward = 1, kTrain = 2, kShared = 3, kGather = 4 };

uint64_t tag_of(Pass pass, View view, Leg leg, int64_t step, size_t micro_batch) {
  return static_cast<uint64_t>(pass) << 61 | (view == View::kDense ? uint64_t{1} << 60 : 0) |
         (leg == Leg::kBackward ? uint64_t{1} << 59 : 0) | (static_cast<uint64_t>(step) & 0x7fffffff) << 24 |
         (micro_batch & 0xffffff);
}

Bytes bytes_of(const torch::Tensor& values) {
  const torch::Tensor flat = values.detach().to(torch::kCPU, torch::kFloat).contiguous();
  Bytes bytes(static_cast<size_t>(flat.numel()) * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), flat.data_ptr<float>(), bytes.size());
  return bytes;
}

Result<torch::Tensor> tensor_of(const Bytes& bytes, torch::IntArrayRef sizes, torch::Device device) {
  torch::Tensor values = torch::empty(sizes, torch::kFloat);
  if (bytes.size() != static_cast<size_t>(values.numel()) * sizeof(float))
    return Error{Code::kCorrupt,
                 fmt::format("{} bytes came for {} f32 numbers", bytes.size(), values.numel())};
  if (!bytes.empty()) std::memcpy(values.data_ptr<float>(), bytes.data(), bytes.size());
  return values.to(device);
}

/// Adds the time it lives to a sum.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum), start_(Clock::now()) {}
  ~Timed() { sum_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Timed(const Timed&) = delete;

 private:
  double& sum_;
  Clock::time_point start_;
};

class DistributedRunner : public StageRunner {
 public:
  DistributedRunner(Net& net, Comm& pipe, StagePipeline pipeline, StageLayout layout)
      : net_(net),
        pipe_(pipe),
        pipeline_(std::move(pipeline)),
        layout_(std::move(layout)),
        stage_(net, net.span()),
        device_(net.parameters().empty() ? torch::Device(torch::kCPU) : net.parameters()[0].device()) {}

  bool has_head() const override { return net_.span().has_head; }

  Result<void> forward(std::span<const MicroBatch> batches, View view, int64_t step,
                       const std::function<void(size_t, const torch::Tensor&)>& sink) override {
    const Timed total(times_.total);
    return guarded([&]() -> Result<void> {
      const torch::NoGradGuard no_gradients;
      begin(batches, step, view, Pass::kForward);
      for (size_t i = 0; i < batches.size(); ++i) {
        torch::Tensor x_BTW;
        if (!is_first()) x_BTW = TRY(receive(i));
        {
          const Timed compute(times_.compute);
          x_BTW = stage_.infer(batches[i].ids_BT, x_BTW);
          if (has_head()) sink(i, x_BTW);
        }
        if (!has_head()) TRY(hand_on(i, x_BTW));
      }
      return {};
    });
  }

  Result<void> train(std::span<const MicroBatch> batches, int64_t step,
                     const std::function<torch::Tensor(size_t, const torch::Tensor&)>& loss,
                     View view) override {
    const Timed total(times_.total);
    Result<void> done = guarded([&]() -> Result<void> {
      begin(batches, step, view, Pass::kTrain);
      const std::vector<torch::Tensor> earlier = take_shared_gradients();
      for (const StageWork& work : one_forward_one_backward(pipe_.rank(), pipe_.size(), batches.size())) {
        if (work.kind == StageWork::Kind::kForward)
          TRY(forward_one(work.micro_batch));
        else
          TRY(backward_one(work.micro_batch, loss));
      }
      return add_shared_gradients(earlier);
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

  void begin(std::span<const MicroBatch> batches, int64_t step, View view, Pass pass) {
    batches_ = batches;
    step_ = step;
    view_ = view;
    pass_ = pass;
    saved_before_.assign(batches.size(), {});
    saved_after_.assign(batches.size(), {});
    first_rows_.clear();
    int64_t first = 0;
    for (const MicroBatch& batch : batches) {
      first_rows_.push_back(first);
      first += batch.ids_BT.numel();
    }
  }

  Result<void> forward_one(size_t i) {
    torch::Tensor x_BTW;
    if (!is_first()) x_BTW = TRY(receive(i));
    {
      const Timed compute(times_.compute);
      x_BTW = stage_.forward(batches_[i].ids_BT, x_BTW);
    }
    return has_head() ? Result<void>() : hand_on(i, x_BTW);
  }

  Result<void> backward_one(size_t i,
                            const std::function<torch::Tensor(size_t, const torch::Tensor&)>& loss) {
    torch::Tensor gradient_BTW;
    if (!has_head()) gradient_BTW = TRY(receive_back(i));
    {
      const Timed compute(times_.compute), backward(times_.backward);
      gradient_BTW = has_head()
                         ? stage_.backward_loss([&](const torch::Tensor& logits) { return loss(i, logits); })
                         : stage_.backward(gradient_BTW);
    }
    return is_first() ? Result<void>() : hand_back(i, gradient_BTW);
  }

  Codec* codec(int64_t boundary) const {
    if (view_ == View::kDense || pipeline_.codecs.empty()) return nullptr;
    return pipeline_.codecs[static_cast<size_t>(boundary)];
  }
  WireKey key(int64_t boundary, size_t i) const {
    return {.seed = pipeline_.seed,
            .step = step_,
            .boundary = boundary,
            .micro_batch = static_cast<int64_t>(i),
            .first_row = first_rows_[i]};
  }
  int64_t before() const { return pipe_.rank() - 1; }  // boundaries beside this stage
  int64_t after() const { return pipe_.rank(); }
  std::vector<int64_t> sizes_of(size_t i) const {
    const torch::Tensor& ids = batches_[i].ids_BT;
    return {ids.size(0), ids.size(1), net_.boundary_width()};
  }
  int64_t n_rows(size_t i) const { return batches_[i].ids_BT.numel(); }

  // Rows and gradients of micro-batch i over the boundary before or after this stage.
  Result<void> hand_on(size_t i, const torch::Tensor& x_BTW) {
    const torch::Tensor x_NW = as_rows(x_BTW.detach());
    Codec* const codec = this->codec(after());
    Payload payload;
    {
      const Timed timed(times_.codec);
      const torch::NoGradGuard no_gradients;
      // Bases learn from the rows of the passes that are trained through them, and from no others.
      if (pass_ == Pass::kTrain && codec != nullptr && codec->basis() != nullptr)
        codec->basis()->harvest(x_NW, key(after(), i));
      payload = codec == nullptr ? Payload{bytes_of(x_NW), 0}
                                 : codec->encode(x_NW, key(after(), i), &saved_after_[i]);
    }
    return send(pipe_.rank() + 1, after(), Leg::kForward, i, codec, std::move(payload));
  }

  Result<void> hand_back(size_t i, const torch::Tensor& g_BTW) {
    const torch::Tensor g_NW = as_rows(g_BTW.detach());
    Codec* const codec = this->codec(before());
    Payload payload;
    {
      const Timed timed(times_.codec);
      const torch::NoGradGuard no_gradients;
      payload = codec == nullptr ? Payload{bytes_of(g_NW), 0}
                                 : codec->encode_gradient(g_NW, key(before(), i), saved_before_[i]);
    }
    return send(pipe_.rank() - 1, before(), Leg::kBackward, i, codec, std::move(payload));
  }

  Result<void> send(int to, int64_t boundary, Leg leg, size_t i, const Codec* codec, Payload payload) {
    if (codec != nullptr && pipeline_.tap)
      pipeline_.tap({.step = step_,
                     .boundary = boundary,
                     .leg = leg,
                     .n_rows = n_rows(i),
                     .logical_bits = payload.logical_bits,
                     .bytes = static_cast<int64_t>(payload.bytes.size())});
    return pipe_.send(to, tag_of(pass_, view_, leg, step_, i), std::move(payload.bytes));
  }

  Result<Payload> take(int from, Leg leg, size_t i, const Codec* codec) {
    const Timed timed(times_.wait);
    const int64_t width = net_.boundary_width();
    const size_t declared = codec == nullptr ? static_cast<size_t>(n_rows(i) * width) * sizeof(float)
                                             : codec->payload_bytes(n_rows(i), width, leg);
    Payload payload;
    payload.bytes = TRY(pipe_.recv(from, tag_of(pass_, view_, leg, step_, i), declared));
    return payload;
  }

  Result<torch::Tensor> receive(size_t i) {
    Codec* const codec = this->codec(before());
    const Payload payload = TRY(take(pipe_.rank() - 1, Leg::kForward, i, codec));
    const Timed timed(times_.codec);
    const torch::NoGradGuard no_gradients;
    const std::vector<int64_t> sizes = sizes_of(i);
    if (codec == nullptr) return tensor_of(payload.bytes, sizes, device_);
    const torch::Tensor rows =
        TRY(codec->decode(payload, n_rows(i), sizes[2], key(before(), i), &saved_before_[i]));
    return rows.to(device_).view(sizes);
  }

  Result<torch::Tensor> receive_back(size_t i) {
    Codec* const codec = this->codec(after());
    const Payload payload = TRY(take(pipe_.rank() + 1, Leg::kBackward, i, codec));
    const Timed timed(times_.codec);
    const torch::NoGradGuard no_gradients;
    const std::vector<int64_t> sizes = sizes_of(i);
    if (codec == nullptr) return tensor_of(payload.bytes, sizes, device_);
    const torch::Tensor rows =
        TRY(codec->decode_gradient(payload, n_rows(i), sizes[2], key(after(), i), saved_after_[i]));
    return rows.to(device_).view(sizes);
  }

  bool holds(const SharedParameter& shared) const {
    return std::find(shared.holders.begin(), shared.holders.end(), pipe_.rank()) != shared.holders.end();
  }
  torch::Tensor parameter(const std::string& name) const { return net_.named_parameters()[name]; }

  /// What was accumulated before this call is shared already: it is put aside.
  std::vector<torch::Tensor> take_shared_gradients() {
    std::vector<torch::Tensor> earlier;
    for (const SharedParameter& shared : layout_.shared) {
      if (!holds(shared)) continue;
      torch::Tensor mine = parameter(shared.name);
      earlier.push_back(mine.grad());
      mine.mutable_grad() = torch::Tensor();
    }
    return earlier;
  }

  Result<void> add_shared_gradients(const std::vector<torch::Tensor>& earlier);

  Net& net_;
  Comm& pipe_;
  const StagePipeline pipeline_;
  const StageLayout layout_;
  Stage stage_;
  const torch::Device device_;

  // Of the call at hand.
  std::span<const MicroBatch> batches_;
  int64_t step_ = 0;
  View view_ = View::kCodec;
  Pass pass_ = Pass::kForward;
  std::vector<int64_t> first_rows_;
  std::vector<torch::Tensor> saved_before_, saved_after_;  // what links a codec's two legs, by micro-batch
};

/// The first holder adds up, in the order of ranks, and gives everyone the sum.
Result<void> DistributedRunner::add_shared_gradients(const std::vector<torch::Tensor>& earlier) {
  const torch::NoGradGuard no_gradients;
  size_t n_held = 0;
  for (size_t i = 0; i < layout_.shared.size(); ++i) {
    const SharedParameter& shared = layout_.shared[i];
    if (!holds(shared)) continue;
    torch::Tensor mine = parameter(shared.name);
    torch::Tensor sum = mine.grad().defined() ? mine.grad() : torch::zeros_like(mine);
    const size_t n_bytes = static_cast<size_t>(mine.numel()) * sizeof(float);
    const uint64_t tag = tag_of(Pass::kShared, view_, Leg::kForward, step_, i);
    const int first = shared.holders[0];
    if (pipe_.rank() != first) {
      TRY(pipe_.send(first, tag, bytes_of(sum)));
      const Bytes bytes = TRY(pipe_.recv(first, tag, n_bytes));
      sum = TRY(tensor_of(bytes, mine.sizes(), device_));
    } else {
      for (size_t holder = 1; holder < shared.holders.size(); ++holder) {
        const Bytes bytes = TRY(pipe_.recv(shared.holders[holder], tag, n_bytes));
        const torch::Tensor other = TRY(tensor_of(bytes, mine.sizes(), device_));
        sum = sum + other;
      }
      for (size_t holder = 1; holder < shared.holders.size(); ++holder)
        TRY(pipe_.send(shared.holders[holder], tag, bytes_of(sum)));
    }
    const torch::Tensor& before = earlier[n_held++];
    mine.mutable_grad() = before.defined() ? before + sum : sum;
  }
  return {};
}

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
    const uint64_t tag = tag_of(Pass::kGather, View::kDense, Leg::kBackward, 0, 0);
    std::vector<torch::Tensor> mine;
    for (const std::string& name : layout_.names[static_cast<size_t>(pipe_.rank())])
      mine.push_back(parameter(name).detach().to(torch::kCPU).contiguous());
    if (pipe_.rank() > 0) {
      const std::vector<char> packed = torch::pickle_save(torch::IValue(mine));
      return pipe_.send(0, tag, Bytes(packed.begin(), packed.end()));
    }
    for (size_t rank = 0; rank < layout_.names.size(); ++rank) {
      if (rank > 0) {
        const Bytes bytes = TRY(pipe_.recv(static_cast<int>(rank), tag, SIZE_MAX));
        mine = torch::pickle_load(std::vector<char>(bytes.begin(), bytes.end())).toTensorVector();
      }
      if (mine.size() != layout_.names[rank].size())
        return Error{Code::kCorrupt, fmt::format("rank {} sent {} parameters of {}", rank, mine.size(),
                                                 layout_.names[rank].size())};
      // A shared one is the same everywhere.
      for (size_t i = 0; i < mine.size(); ++i) whole.emplace(layout_.names[rank][i], mine[i]);
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
