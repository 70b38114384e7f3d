/// A stage in its own process or thread against the pipeline in one: what both say of the same batches.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/torch.h>

#include "toys.h"
#include "train/pipeline/local_runner.h"
#include "train/pipeline/stage.h"
#include "train/pipeline/stage_runner.h"

namespace forebay::train {

struct Difference {
  double logits = 0;  // largest of all elements
  double gradients = 0;
  double norm = 0;
};

inline Result<void> expected(bool holds, const std::string& what) {
  if (holds) return {};
  return Error{Code::kInternal, what};
}

inline double largest(const torch::Tensor& a, const torch::Tensor& b) {
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
}

inline torch::Tensor gradient(Net& net, const std::string& name) {
  const torch::Tensor parameter = net.named_parameters()[name];
  return parameter.grad().defined() ? parameter.grad() : torch::zeros_like(parameter);
}

/// Forward, train twice without clearing gradients, dense and with codecs. Also checks that what the codec's
/// ledger says is what went over the pipe.
inline Result<Difference> compare_with_local(Comm& pipe, const ToyShape& shape, View view, Codec& codec,
                                             Codec& local_codec) {
  const std::vector<Codec*> codecs(static_cast<size_t>(pipe.size()) - 1, &codec);
  const std::vector<Codec*> local_codecs(static_cast<size_t>(pipe.size()) - 1, &local_codec);
  ToyNet whole(shape);
  const std::unique_ptr<Runner> local =
      TRY(make_local_runner(whole, {.n_stages = pipe.size(), .codecs = local_codecs, .seed = 5}));
  const std::vector<StageSpan> spans = TRY(split_blocks(shape.n_blocks, pipe.size()));
  ToyNet part(shape, spans[static_cast<size_t>(pipe.rank())]);
  int64_t tapped = 0;
  const std::unique_ptr<StageRunner> runner = TRY(make_stage_runner(
      part, pipe,
      {.codecs = codecs, .seed = 5, .tap = [&](const WireTransfer& sent) { tapped += sent.bytes; }}));
  TRY(expected(runner->has_head() == (pipe.rank() + 1 == pipe.size()), "the last stage has the head"));

  Difference difference;
  const std::vector<MicroBatch> batches = toy_batches(5, shape);
  const int64_t before = pipe.bytes_sent().bytes;
  std::vector<torch::Tensor> logits;
  TRY(local->forward(batches, view, 7, [&](size_t, const torch::Tensor& x) { logits.push_back(x.clone()); }));
  TRY(runner->forward(batches, view, 7, [&](size_t i, const torch::Tensor& x) {
    difference.logits = std::max(difference.logits, largest(x, logits[i]));
  }));
  const auto loss = [&](size_t i, const torch::Tensor& x) { return toy_loss(x, batches[i].ids_BT); };
  for (const int64_t step : {7, 8}) {
    TRY(local->train(batches, step, loss, view));
    TRY(runner->train(batches, step, loss, view));
  }
  for (const auto& parameter : part.named_parameters())
    difference.gradients = std::max(
        difference.gradients, largest(gradient(part, parameter.key()), gradient(whole, parameter.key())));
  // The ends tell each other the gradient of what they share, once for each of two calls.
  const bool is_end = pipe.rank() == 0 || pipe.rank() + 1 == pipe.size();
  const int64_t tied =
      shape.ties_head && pipe.size() > 1 && is_end ? int64_t{2} * 4 * shape.n_words * shape.width : 0;
  if (view == View::kCodec)
    TRY(expected(tapped + tied == pipe.bytes_sent().bytes - before, "the tap counts what is sent"));
  if (view == View::kDense) TRY(expected(tapped == 0, "a dense pass is not on the codec's account"));
  const double norm = TRY(runner->gradient_norm()), local_norm = TRY(local->gradient_norm());
  difference.norm = std::abs(norm - local_norm);

  const std::map<std::string, torch::Tensor> all = TRY(runner->gather_parameters());
  if (pipe.rank() > 0) {
    TRY(expected(all.empty(), "parameters go to rank 0"));
    return difference;
  }
  TRY(expected(all.size() == whole.named_parameters().size(), "all parameters come to rank 0"));
  for (const auto& [name, value] : all)
    TRY(expected(torch::equal(value, whole.named_parameters()[name]), "parameter " + name));
  return difference;
}

inline Result<Difference> compare_with_local(Comm& pipe, const ToyShape& shape, View view) {
  ToyCodec codec, local_codec;
  return compare_with_local(pipe, shape, view, codec, local_codec);
}

}  // namespace forebay::train
