#include "train/pipeline/neighbours.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "train/pipeline/boundary.h"
#include "train/wire/basis.h"

namespace forebay::train {

uint64_t message_tag(Pass pass, View view, Leg leg, int64_t step, size_t micro_batch) {
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

void Neighbours::begin(std::span<const MicroBatch> batches, int64_t step, View view, Pass pass) {
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

Codec* Neighbours::codec(int64_t boundary) const {
  if (view_ == View::kDense || pipeline_.codecs.empty()) return nullptr;
  return pipeline_.codecs[static_cast<size_t>(boundary)];
}

WireKey Neighbours::key(int64_t boundary, size_t i) const {
  return {.seed = pipeline_.seed,
          .step = step_,
          .boundary = boundary,
          .micro_batch = static_cast<int64_t>(i),
          .first_row = first_rows_[i]};
}

std::vector<int64_t> Neighbours::sizes_of(size_t i) const {
  const torch::Tensor& ids = batches_[i].ids_BT;
  return {ids.size(0), ids.size(1), width_};
}

WireTransfer Neighbours::transfer(int64_t boundary, Leg leg, size_t i, const Payload& payload) const {
  return {.step = step_,
          .boundary = boundary,
          .leg = leg,
          .n_rows = n_rows(i),
          .logical_bits = payload.logical_bits,
          .bytes = static_cast<int64_t>(payload.bytes.size())};
}

Result<void> Neighbours::send(int to, int64_t boundary, Leg leg, size_t i, const Codec* codec,
                              Payload payload) {
  if (codec != nullptr && pipeline_.tap) pipeline_.tap(transfer(boundary, leg, i, payload));
  return pipe_.send(to, message_tag(pass_, view_, leg, step_, i), std::move(payload.bytes));
}

Result<Payload> Neighbours::take(int from, int64_t boundary, Leg leg, size_t i, const Codec* codec) {
  const Timed timed(times_.wait);
  const size_t declared = codec == nullptr ? static_cast<size_t>(n_rows(i) * width_) * sizeof(float)
                                           : codec->payload_bytes(n_rows(i), width_, leg);
  Payload payload;
  payload.bytes = TRY(pipe_.recv(from, message_tag(pass_, view_, leg, step_, i), declared));
  if (codec != nullptr && pipeline_.meter) pipeline_.meter(transfer(boundary, leg, i, payload));
  return payload;
}

Result<void> Neighbours::hand_on(size_t i, const torch::Tensor& x_BTW) {
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

Result<void> Neighbours::hand_back(size_t i, const torch::Tensor& g_BTW) {
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

Result<torch::Tensor> Neighbours::receive(size_t i) {
  Codec* const codec = this->codec(before());
  const Payload payload = TRY(take(pipe_.rank() - 1, before(), Leg::kForward, i, codec));
  const Timed timed(times_.codec);
  const torch::NoGradGuard no_gradients;
  const std::vector<int64_t> sizes = sizes_of(i);
  if (codec == nullptr) return tensor_of(payload.bytes, sizes, device_);
  const torch::Tensor rows =
      TRY(codec->decode(payload, n_rows(i), width_, key(before(), i), &saved_before_[i]));
  return rows.to(device_).view(sizes);
}

Result<torch::Tensor> Neighbours::receive_back(size_t i) {
  Codec* const codec = this->codec(after());
  const Payload payload = TRY(take(pipe_.rank() + 1, after(), Leg::kBackward, i, codec));
  const Timed timed(times_.codec);
  const torch::NoGradGuard no_gradients;
  const std::vector<int64_t> sizes = sizes_of(i);
  if (codec == nullptr) return tensor_of(payload.bytes, sizes, device_);
  const torch::Tensor rows =
      TRY(codec->decode_gradient(payload, n_rows(i), width_, key(after(), i), saved_after_[i]));
  return rows.to(device_).view(sizes);
}

}  // namespace forebay::train
