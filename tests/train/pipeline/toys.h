/// A model and a codec small enough to check a pipeline with, in this process and in the ones it starts.
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "train/nets/net.h"
#include "train/pipeline/runner.h"
#include "train/wire/codec.h"

namespace forebay::train {

struct ToyShape {
  int64_t n_blocks = 4;
  int64_t width = 8;
  int64_t n_words = 11;
  bool has_auxiliary = false;  // each block has a loss of its own
  bool ties_head = false;      // the head is the embedding
  double sleep_s = 0;          // of each block, forward and twice that backward: time without work
};

/// Nothing happens, but it takes time.
class Sleep : public torch::autograd::Function<Sleep> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x, double s) {
    context->saved_data["s"] = 2 * s;
    wait(s);
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    wait(context->saved_data["s"].toDouble());
    return {gradients[0], {}};
  }

 private:
  static void wait(double s) { std::this_thread::sleep_for(std::chrono::duration<double>(s)); }
};

/// x += tanh(W x), causal sums over positions between them. Its weights are a function of the block's index,
/// so that a part has the weights of the whole.
class ToyNet : public Net {
 public:
  explicit ToyNet(ToyShape shape) : ToyNet(shape, {0, shape.n_blocks, true, true}) {}
  ToyNet(ToyShape shape, StageSpan span) : Net(span), shape_(shape) {
    if (span.has_embedding || (span.has_head && shape.ties_head))
      table_ = register_parameter("table", made(100, {shape.n_words, shape.width}));
    if (span.has_head && !shape.ties_head)
      head_ = register_parameter("head", made(101, {shape.n_words, shape.width}));
    for (int64_t index = span.first_block; index < span.last_block; ++index)
      blocks_.push_back(
          register_parameter("block" + std::to_string(index), made(index, {shape.width, shape.width})));
  }

  const ModelConfig& config() const override { return config_; }
  int64_t boundary_width() const override { return shape_.width; }
  std::string tied_parameter() const override { return shape_.ties_head ? "table" : ""; }

  torch::Tensor embed(const torch::Tensor& ids_BT) override { return torch::embedding(table_, ids_BT); }
  torch::Tensor block(int64_t index, const torch::Tensor& x_BTW, const torch::Tensor& ids_BT) override {
    const torch::Tensor mean = x_BTW.cumsum(1) / torch::arange(1, ids_BT.size(1) + 1).view({1, -1, 1});
    const torch::Tensor y =
        torch::tanh(torch::matmul(mean, blocks_[static_cast<size_t>(index - span().first_block)].t()));
    if (shape_.has_auxiliary) {
      const torch::Tensor loss = 0.1 * y.square().mean();
      auxiliary_ = auxiliary_.defined() ? auxiliary_ + loss : loss;
    }
    return shape_.sleep_s > 0 ? Sleep::apply(x_BTW + y, shape_.sleep_s) : x_BTW + y;
  }
  torch::Tensor head(const torch::Tensor& x_BTW) override {
    return torch::matmul(x_BTW, (shape_.ties_head ? table_ : head_).t());
  }
  torch::Tensor take_auxiliary_loss() override { return std::exchange(auxiliary_, torch::Tensor()); }

 private:
  static torch::Tensor made(int64_t key, torch::IntArrayRef sizes) {
    const int64_t n = sizes[0] * sizes[1];
    return (torch::sin(torch::arange(n) * (1.0 + 0.37 * static_cast<double>(key)) + 0.5) * 0.4).view(sizes);
  }

  ToyShape shape_;
  ModelConfig config_;
  torch::Tensor table_, head_, auxiliary_;
  std::vector<torch::Tensor> blocks_;
};

/// Every other coordinate, twice as large; which ones depends on the key and is what `saved` holds. f32 on
/// the wire.
class ToyCodec : public Codec {
 public:
  std::string name() const override { return "toy"; }
  Bias bias() const override { return Bias::kUnbiased; }
  double forward_bits(int64_t width) const override { return static_cast<double>(width / 2 * 32); }
  double backward_bits(int64_t width) const override { return forward_bits(width); }

  torch::Tensor view(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) override {
    *saved = kept(x_NW.size(1), key);
    return expand(picked(x_NW, *saved), *saved, x_NW.size(1));
  }
  torch::Tensor gradient_view(const torch::Tensor& g_NW, const WireKey&,
                              const torch::Tensor& saved) override {
    return expand(picked(g_NW, saved), saved, g_NW.size(1));
  }
  Payload encode(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) override {
    *saved = kept(x_NW.size(1), key);
    return packed(picked(x_NW, *saved));
  }
  Result<torch::Tensor> decode(const Payload& payload, int64_t n_rows, int64_t width, const WireKey& key,
                               torch::Tensor* saved) override {
    *saved = kept(width, key);
    return unpacked(payload, n_rows, width, *saved);
  }
  Payload encode_gradient(const torch::Tensor& g_NW, const WireKey&, const torch::Tensor& saved) override {
    return packed(picked(g_NW, saved));
  }
  Result<torch::Tensor> decode_gradient(const Payload& payload, int64_t n_rows, int64_t width, const WireKey&,
                                        const torch::Tensor& saved) override {
    return unpacked(payload, n_rows, width, saved);
  }

 private:
  static torch::Tensor kept(int64_t width, const WireKey& key) {
    const int64_t first =
        static_cast<int64_t>(key.seed + static_cast<uint64_t>(key.step + key.boundary + key.first_row)) % 2;
    return torch::arange(first, width, 2);
  }
  static torch::Tensor picked(const torch::Tensor& rows, const torch::Tensor& kept) {
    return 2 * rows.index_select(1, kept);
  }
  static torch::Tensor expand(const torch::Tensor& few, const torch::Tensor& kept, int64_t width) {
    return torch::zeros({few.size(0), width}).index_copy_(1, kept, few);
  }
  static Payload packed(const torch::Tensor& few) {
    const torch::Tensor flat = few.contiguous();
    Payload payload;
    payload.bytes.resize(static_cast<size_t>(flat.numel()) * sizeof(float));
    std::memcpy(payload.bytes.data(), flat.data_ptr<float>(), payload.bytes.size());
    payload.logical_bits = static_cast<double>(payload.bytes.size()) * 8;
    return payload;
  }
  static Result<torch::Tensor> unpacked(const Payload& payload, int64_t n_rows, int64_t width,
                                        const torch::Tensor& kept) {
    torch::Tensor few = torch::empty({n_rows, kept.size(0)});
    if (payload.bytes.size() != static_cast<size_t>(few.numel()) * sizeof(float))
      return Error{Code::kCorrupt, "toy payload of another size"};
    std::memcpy(few.data_ptr<float>(), payload.bytes.data(), payload.bytes.size());
    return expand(few, kept, width);
  }
};

/// Sequences of different lengths per micro-batch, the same for the same seed.
inline std::vector<MicroBatch> toy_batches(size_t n, const ToyShape& shape, int64_t seed = 0) {
  std::vector<MicroBatch> batches;
  for (size_t i = 0; i < n; ++i) {
    const int64_t length = 3 + static_cast<int64_t>(i) % 3;
    const torch::Tensor ids =
        (torch::arange(2 * length) * 7 + static_cast<int64_t>(i) * 3 + seed) % shape.n_words;
    batches.push_back({ids.view({2, length})});
  }
  return batches;
}

/// Next-word cross entropy.
inline torch::Tensor toy_loss(const torch::Tensor& logits_BTV, const torch::Tensor& ids_BT) {
  const int64_t n_words = logits_BTV.size(2);
  return torch::nn::functional::cross_entropy(
      logits_BTV.slice(1, 0, logits_BTV.size(1) - 1).reshape({-1, n_words}),
      ids_BT.slice(1, 1).reshape({-1}));
}

}  // namespace forebay::train
