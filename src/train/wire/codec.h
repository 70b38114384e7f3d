/// What crosses a stage boundary: rows of activations one way, rows of gradients the other, as bytes that a
/// slow link can carry. A codec says what the receiver gets instead of the rows, and what that costs on the
/// wire.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/wire/payload.h"

namespace forebay::train {

class BasisBank;

/// Everything that a codec's randomness may depend on: the same key gives the same noise, in the forward pass
/// that made old log-probs, in the one that is trained, on the sender and on the receiver.
struct WireKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t boundary = 0;     // between stage `boundary` and the next
  int64_t micro_batch = 0;  // matters only to masks that change with the micro-batch
  /// The first row's number within the step, counted through all of its micro-batches: row i of the call is
  /// row first_row + i. Two calls of a step that share numbers share noise, so only the passes over the same
  /// rows (old, trained, reference) may.
  int64_t first_row = 0;
};

/// Codecs say what they are; the launch test (self_test.h) holds them to it.
enum class Bias { kUnbiased, kBiased };

/// Rows are [N, W] on any device, f32 inside (other float types are widened); what comes out is f32 and has
/// no gradient. Confined to the thread of its stage. One codec serves all boundaries of its process. A codec
/// with state (a basis) changes what it shows only through basis(), never in view, encode or decode.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::string name() const = 0;  // "prf k=77"
  virtual Bias bias() const = 0;
  /// Logical bits per row; the gradient's leg may differ.
  virtual double forward_bits(int64_t width) const = 0;
  virtual double backward_bits(int64_t width) const = 0;
  /// The bytes that a payload of n_rows declares: what encode makes, and what the meter at the receiver lets
  /// through. Here: the logical bits in whole bytes.
  virtual size_t payload_bytes(int64_t n_rows, int64_t width, Leg leg) const {
    const double bits = leg == Leg::kForward ? forward_bits(width) : backward_bits(width);
    return static_cast<size_t>(std::ceil(static_cast<double>(n_rows) * bits / 8));
  }

  /// What the receiver sees of x, and what the sender later sees of the receiver's gradient g at the same
  /// key. The values are those of encode + decode to the bit; no bytes are made. `saved` links the two legs
  /// of one micro-batch: undefined for codecs that need no link; may be null where no gradient follows.
  virtual torch::Tensor view(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) = 0;
  virtual torch::Tensor gradient_view(const torch::Tensor& g_NW, const WireKey& key,
                                      const torch::Tensor& saved) = 0;

  /// The same with bytes in between. Sender and receiver get the same `saved`. Decoded rows are on the device
  /// of receive_on(). Errors: kCorrupt for a payload of another size.
  virtual Payload encode(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) = 0;
  virtual Result<torch::Tensor> decode(const Payload& payload, int64_t n_rows, int64_t width,
                                       const WireKey& key, torch::Tensor* saved) = 0;
  virtual Payload encode_gradient(const torch::Tensor& g_NW, const WireKey& key,
                                  const torch::Tensor& saved) = 0;
  virtual Result<torch::Tensor> decode_gradient(const Payload& payload, int64_t n_rows, int64_t width,
                                                const WireKey& key, const torch::Tensor& saved) = 0;

  /// Where decode puts its rows, and computes them; the CPU unless told.
  void receive_on(torch::Device device) { device_ = device; }

  /// The bases of a codec that learns them; null for the others.
  virtual BasisBank* basis() { return nullptr; }
  /// Changes when, beside the key, what the codec shows of the same rows changes: part of the ViewEpoch.
  virtual uint64_t state_id() const { return 0; }
  /// All state, by name, for a checkpoint; empty for most codecs. restore() takes what state() gave: what
  /// follows is the same to the bit.
  virtual std::map<std::string, torch::Tensor> state() const { return {}; }
  virtual Result<void> restore(const std::map<std::string, torch::Tensor>& state) {
    if (state.empty()) return {};
    return Error{Code::kInvalidArgument,
                 "codec " + name() + ": it has no state, '" + state.begin()->first + "' was given"};
  }

 protected:
  torch::Device device_ = torch::kCPU;
};

}  // namespace forebay::train
