/// What codecs with a learned basis share: the bank of bases, which is all of their state, and the way into a
/// basis and out of it.
#pragma once

#include <map>
#include <string>

#include "train/wire/basis.h"
#include "train/wire/codec_options.h"
#include "train/wire/field_codec.h"

namespace forebay::train {

class BasisCodec : public FieldCodec {
 public:
  BasisBank* basis() final { return &bank_; }
  uint64_t state_id() const final { return bank_.id(); }
  std::map<std::string, torch::Tensor> state() const final { return bank_.state(); }
  Result<void> restore(const std::map<std::string, torch::Tensor>& state) final {
    return bank_.restore(state);
  }

 protected:
  BasisCodec(const CodecOptions& options, int64_t width)
      : rank_(options.rank), bank_(width, options.rank, options.seed, options.accumulate) {}

  int64_t rank() const { return rank_; }
  /// X Q and C Q^T, with the basis in use at the key's boundary.
  torch::Tensor project(const torch::Tensor& x_NW, const WireKey& key) {
    return x_NW.matmul(bank_.active(key.boundary, x_NW.device()));
  }
  torch::Tensor expand(const torch::Tensor& c_NR, const WireKey& key) {
    return c_NR.matmul(bank_.active(key.boundary, c_NR.device()).t());
  }

 private:
  int64_t rank_;
  BasisBank bank_;
};

}  // namespace forebay::train
