// "powersgd": c = x Q is sent, x^ = c Q^T. J = Q Q^T is its own transpose: the gradient goes back the same
// way. What Q does not span is lost in the same direction for as long as Q is held. Source: PowerSGD
// (arXiv:1905.13727), without the error feedback, which activations cannot have.
#include <fmt/format.h>

#include "train/wire/basis.h"
#include "train/wire/codecs.h"
#include "train/wire/field_codec.h"

namespace forebay::train {
namespace {

class PowerSgdCodec : public FieldCodec {
 public:
  PowerSgdCodec(const CodecOptions& options, int64_t width)
      : rank_(options.rank), bank_(width, options.rank, options.seed, options.accumulate) {}

  std::string name() const override { return fmt::format("powersgd r={}", rank_); }
  Bias bias() const override { return Bias::kBiased; }
  double forward_bits(int64_t) const override { return 16.0 * static_cast<double>(rank_); }
  double backward_bits(int64_t width) const override { return forward_bits(width); }
  BasisBank* basis() override { return &bank_; }
  uint64_t state_id() const override { return bank_.id(); }
  std::map<std::string, torch::Tensor> state() const override { return bank_.state(); }
  Result<void> restore(const std::map<std::string, torch::Tensor>& state) override {
    return bank_.restore(state);
  }

 protected:
  std::vector<Field> fields(int64_t, Leg) const override { return {{rank_, 16}}; }
  Fields measure(const torch::Tensor& x_NW, const WireKey& key, Leg) override {
    return {x_NW.matmul(bank_.active(key.boundary, x_NW.device())).to(torch::kBFloat16)};
  }
  torch::Tensor rebuild(const Fields& fields, int64_t, const WireKey& key, Leg, torch::Tensor&) override {
    return fields[0].to(torch::kFloat).matmul(bank_.active(key.boundary, fields[0].device()).t());
  }

 private:
  int64_t rank_;
  BasisBank bank_;
};

}  // namespace

std::unique_ptr<Codec> make_powersgd_codec(const CodecOptions& options, int64_t width) {
  return std::make_unique<PowerSgdCodec>(options, width);
}

}  // namespace forebay::train
