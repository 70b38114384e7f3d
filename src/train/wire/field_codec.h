/// What all codecs share: a row becomes a few fields (16-bit numbers, codes of b bits), fields become rows
/// again. view goes from rows to fields and back, encode and decode put bytes between; so they agree to the
/// bit by construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/wire/codec.h"

namespace forebay::train {

/// `columns` numbers per row: 16 bits each as bf16, or 1..8 bits as codes.
struct Field {
  int64_t columns = 0;
  int bits = 16;
};

/// One tensor per field: bf16 [N, columns], or uint8 [N, columns].
using Fields = std::vector<torch::Tensor>;

class FieldCodec : public Codec {
 public:
  size_t payload_bytes(int64_t n_rows, int64_t width, Leg leg) const override;
  torch::Tensor view(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) final;
  torch::Tensor gradient_view(const torch::Tensor& g_NW, const WireKey& key,
                              const torch::Tensor& saved) final;
  Payload encode(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) final;
  Result<torch::Tensor> decode(const Payload& payload, int64_t n_rows, int64_t width, const WireKey& key,
                               torch::Tensor* saved) final;
  Payload encode_gradient(const torch::Tensor& g_NW, const WireKey& key, const torch::Tensor& saved) final;
  Result<torch::Tensor> decode_gradient(const Payload& payload, int64_t n_rows, int64_t width,
                                        const WireKey& key, const torch::Tensor& saved) final;

 protected:
  /// What a row of this width is sent as.
  virtual std::vector<Field> fields(int64_t width, Leg leg) const = 0;
  /// Rows, f32 and contiguous, to fields.
  virtual Fields measure(const torch::Tensor& x_NW, const WireKey& key, Leg leg) = 0;
  /// What sender and receiver keep of the forward leg's fields, for both legs; undefined: nothing.
  virtual torch::Tensor link(const Fields& /*forward*/) { return {}; }
  /// Fields to rows, f32, in memory of their own. `saved` is the forward leg's link.
  virtual torch::Tensor rebuild(const Fields& fields, int64_t width, const WireKey& key, Leg leg,
                                const torch::Tensor& saved) = 0;

 private:
  Payload pack(const Fields& measured, int64_t n_rows, int64_t width, Leg leg) const;
  Result<Fields> unpack(const Payload& payload, int64_t n_rows, int64_t width, Leg leg) const;
};

}  // namespace forebay::train
