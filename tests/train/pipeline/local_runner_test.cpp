// A pipeline in one process against the model without one, and against libtorch's own autograd with codecs in
// the graph.
#include "train/pipeline/local_runner.h"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include "toys.h"
#include "train/pipeline/stage.h"

namespace forebay::train {
namespace {

/// The codec as a node of the graph: what a boundary is by definition.
class CodecNode : public torch::autograd::Function<CodecNode> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x_NW,
                               int64_t codec, int64_t step, int64_t boundary, int64_t micro_batch,
                               int64_t first_row) {
    const WireKey key{5, step, boundary, micro_batch, first_row};
    torch::Tensor saved;
    torch::Tensor view = reinterpret_cast<Codec*>(codec)->view(x_NW, key, &saved);
    context->save_for_backward({saved});
    context->saved_data["codec"] = codec;
    return view;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    Codec* const codec = reinterpret_cast<Codec*>(context->saved_data["codec"].toInt());
    const torch::Tensor view =
        codec->gradient_view(gradients[0].contiguous(), {}, context->get_saved_variables()[0]);
    return {view, {}, {}, {}, {}, {}};
  }
};

std::vector<torch::Tensor> gradients_of(Net& net) {
  std::vector<torch::Tensor> gradients;
  for (torch::Tensor& parameter : net.parameters()) {
    gradients.push_back(parameter.grad().clone());
    parameter.mutable_grad() = torch::Tensor();
  }
  return gradients;
}

void expect_same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << "parameter " << i;
}

/// Of the model as one graph, a codec between every two blocks when there is one.
std::vector<torch::Tensor> reference(ToyNet& net, const std::vector<MicroBatch>& batches, int64_t step,
                                     Codec* codec) {
  int64_t first_row = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    const torch::Tensor& ids = batches[i].ids_BT;
    torch::Tensor x = net.embed(ids);
    for (int64_t index = 0; index < 4; ++index) {
      if (index > 0 && codec != nullptr)
        x = CodecNode::apply(x.reshape({-1, x.size(2)}), reinterpret_cast<int64_t>(codec), step, index - 1,
                             static_cast<int64_t>(i), first_row)
                .view(x.sizes());
      x = net.block(index, x, ids);
    }
    torch::Tensor loss = toy_loss(net.head(x), ids);
    if (const torch::Tensor own = net.take_auxiliary_loss(); own.defined()) loss = loss + own;
    loss.backward();
    first_row += ids.numel();
  }
  return gradients_of(net);
}

Result<void> train(Runner& runner, const std::vector<MicroBatch>& batches, int64_t step,
                   View view = View::kCodec) {
  return runner.train(
      batches, step,
      [&](size_t i, const torch::Tensor& logits) { return toy_loss(logits, batches[i].ids_BT); }, view);
}

TEST(LocalRunner, WithoutCodecsIsTheModelForAnyNumberOfStages) {
  const ToyShape shape{.has_auxiliary = true};
  ToyNet net(shape);
  const std::vector<MicroBatch> batches = toy_batches(3, shape);
  const std::vector<torch::Tensor> expected = reference(net, batches, 0, nullptr);
  for (const int64_t n_stages : {1, 2, 3, 4}) {
    const Result<std::unique_ptr<Runner>> runner = make_local_runner(net, {.n_stages = n_stages});
    ASSERT_TRUE(runner) << runner.error().message;
    EXPECT_TRUE((*runner)->has_head());
    ASSERT_TRUE((*runner)->forward(batches, View::kCodec, 0, [&](size_t i, const torch::Tensor& logits) {
      EXPECT_TRUE(torch::equal(logits, net.logits(batches[i].ids_BT))) << n_stages << " stages, batch " << i;
    }));
    net.take_auxiliary_loss();
    ASSERT_TRUE(train(**runner, batches, 0));
    double squares = 0;
    for (const torch::Tensor& parameter : net.parameters())
      squares += parameter.grad().to(torch::kDouble).square().sum().item<double>();
    EXPECT_NEAR((*runner)->gradient_norm().value(), std::sqrt(squares), 1e-12);
    expect_same(gradients_of(net), expected);
  }
}

TEST(LocalRunner, CodecsAreWhatNodesOfTheGraphWouldBe) {
  const ToyShape shape{.has_auxiliary = true};
  ToyNet net(shape);
  ToyCodec codec;
  std::vector<WireTransfer> transfers;
  const auto runner =
      make_local_runner(net, {.n_stages = 4,
                              .codecs = {&codec, &codec, &codec},
                              .seed = 5,
                              .tap = [&](const WireTransfer& transfer) { transfers.push_back(transfer); }});
  ASSERT_TRUE(runner) << runner.error().message;
  const std::vector<MicroBatch> batches = toy_batches(3, shape);
  const std::vector<torch::Tensor> dense = reference(net, batches, 3, nullptr);
  const std::vector<torch::Tensor> expected = reference(net, batches, 3, &codec);
  EXPECT_FALSE(torch::equal(dense[0], expected[0]));
  ASSERT_TRUE(train(**runner, batches, 3));
  expect_same(gradients_of(net), expected);

  int64_t n_rows = 0;
  for (const MicroBatch& batch : batches) n_rows += batch.ids_BT.numel();
  double forward = 0, backward = 0;
  for (const WireTransfer& transfer : transfers) {
    EXPECT_EQ(transfer.step, 3);
    (transfer.leg == Leg::kForward ? forward : backward) += transfer.logical_bits;
  }
  EXPECT_EQ(forward, static_cast<double>(3 * n_rows * 4 * 32));  // boundaries, rows, half of 8 numbers, bits
  EXPECT_EQ(backward, forward);

  transfers.clear();
  ASSERT_TRUE(train(**runner, batches, 3, View::kDense));
  expect_same(gradients_of(net), dense);
  EXPECT_TRUE(transfers.empty()) << "a dense replay is not on this wire";
}

TEST(LocalRunner, ForwardAndTrainSeeTheSameLogits) {
  const ToyShape shape;
  ToyNet net(shape);
  ToyCodec codec;
  const auto runner = make_local_runner(net, {.n_stages = 2, .codecs = {&codec}});
  ASSERT_TRUE(runner) << runner.error().message;
  const std::vector<MicroBatch> batches = toy_batches(4, shape);
  std::vector<torch::Tensor> old_logits;
  const auto keep = [&](size_t, const torch::Tensor& logits) { old_logits.push_back(logits.clone()); };
  ASSERT_TRUE((*runner)->forward(batches, View::kCodec, 9, keep));
  ASSERT_TRUE((*runner)->train(batches, 9, [&](size_t i, const torch::Tensor& logits) {
    EXPECT_TRUE(logits.requires_grad());
    EXPECT_TRUE(torch::equal(logits, old_logits[i])) << i;
    return toy_loss(logits, batches[i].ids_BT);
  }));
}

TEST(LocalRunner, AnUndefinedLossIsNoGradientAndAThrownOneAnError) {
  const ToyShape shape;
  ToyNet net(shape);
  const auto runner = make_local_runner(net, {.n_stages = 2});
  ASSERT_TRUE(runner) << runner.error().message;
  const std::vector<MicroBatch> batches = toy_batches(2, shape);
  ASSERT_TRUE((*runner)->train(batches, 0, [](size_t, const torch::Tensor&) { return torch::Tensor(); }));
  EXPECT_EQ((*runner)->gradient_norm().value(), 0.0);
  const Result<void> thrown = (*runner)->train(batches, 0, [](size_t, const torch::Tensor&) -> torch::Tensor {
    throw std::runtime_error("odd\nloss");
  });
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().message, "odd");
  for (torch::Tensor& parameter : net.parameters()) parameter.mutable_grad() = torch::Tensor();
  ASSERT_TRUE(train(**runner, batches, 0)) << "usable after a failure";
  const std::vector<torch::Tensor> again = gradients_of(net);
  expect_same(again, reference(net, batches, 0, nullptr));
}

TEST(LocalRunner, RefusesWhatDoesNotFit) {
  ToyNet net(ToyShape{});
  ToyNet part(ToyShape{}, {0, 2, true, false});
  ToyCodec codec;
  EXPECT_NE(make_local_runner(net, {.n_stages = 5}).error().message.find("1 to 4"), std::string::npos);
  EXPECT_NE(
      make_local_runner(net, {.n_stages = 2, .codecs = {&codec, &codec}}).error().message.find("2 codecs"),
      std::string::npos);
  EXPECT_FALSE(make_local_runner(part, {.n_stages = 2}));
}

TEST(Stages, DivideBlocksEvenly) {
  for (int64_t n_blocks = 1; n_blocks < 20; ++n_blocks)
    for (int64_t n_stages = 1; n_stages <= n_blocks; ++n_stages) {
      const std::vector<StageSpan> spans = split_blocks(n_blocks, n_stages).value();
      ASSERT_EQ(spans.size(), static_cast<size_t>(n_stages));
      EXPECT_TRUE(spans.front().has_embedding && spans.back().has_head);
      int64_t next = 0;
      for (const StageSpan& span : spans) {
        EXPECT_EQ(span.first_block, next);
        EXPECT_TRUE(span.last_block - span.first_block == n_blocks / n_stages ||
                    span.last_block - span.first_block == (n_blocks + n_stages - 1) / n_stages);
        next = span.last_block;
      }
      EXPECT_EQ(next, n_blocks);
    }
  EXPECT_FALSE(split_blocks(3, 4));
  EXPECT_FALSE(split_blocks(3, 0));
}

}  // namespace
}  // namespace forebay::train
