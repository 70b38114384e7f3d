/// What crosses a stage boundary: rows of activations one way, rows of gradients the other, as bytes that a
/// slow link can carry. A codec says what the receiver gets instead of the rows, and what that costs on the
/// wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

namespace forebay::train {

/// Everything that a codec's randomness may depend on: the same key gives the same noise, in the forward pass
/// that made old log-probs, in the one that is trained, on the sender and on the receiver.
struct WireKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t boundary = 0;     // between stage `boundary` and the next
  int64_t micro_batch = 0;  // with its first row's index: where in the step the rows are
  int64_t first_row = 0;
};

/// Activations go forward, gradients come back.
enum class Leg { kForward, kBackward };

/// Codecs say what they are; the launch test holds them to it.
enum class Bias { kUnbiased, kBiased };

struct Payload {
  std::vector<uint8_t> bytes;  // exactly what is sent
  double logical_bits = 0;     // what a packed stream of fractional groups would take; bytes * 8 is not less
};

/// Rows are [N, W] f32 on any device. Confined to the thread of its stage. A codec with state (a basis)
/// changes it only through its owner's update/activate (ViewEpoch), never in encode or decode.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::string name() const = 0;  // "prf k=77"
  virtual Bias bias() const = 0;
  /// Per row; the gradient's leg may differ.
  virtual double forward_bits(int64_t width) const = 0;
  virtual double backward_bits(int64_t width) const = 0;

  /// What the receiver sees of x, and what the sender later sees of the receiver's gradient g at the same
  /// key. The values are those of encode + decode to the bit; no bytes are made. `saved` links the two legs
  /// of one micro-batch.
  virtual torch::Tensor view(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) = 0;
  virtual torch::Tensor gradient_view(const torch::Tensor& g_NW, const WireKey& key,
                                      const torch::Tensor& saved) = 0;

  /// The same with bytes in between.
  virtual Payload encode(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) = 0;
  virtual Result<torch::Tensor> decode(const Payload& payload, int64_t n_rows, int64_t width,
                                       const WireKey& key, torch::Tensor* saved) = 0;
  virtual Payload encode_gradient(const torch::Tensor& g_NW, const WireKey& key,
                                  const torch::Tensor& saved) = 0;
  virtual Result<torch::Tensor> decode_gradient(const Payload& payload, int64_t n_rows, int64_t width,
                                                const WireKey& key, const torch::Tensor& saved) = 0;
};

}  // namespace forebay::train
