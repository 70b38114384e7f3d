// "powersgd": c = x Q is sent, x^ = c Q^T. J = Q Q^T is its own transpose: the gradient goes back the same
// way. What Q does not span is lost in the same direction for as long as Q is held. Source: PowerSGD
// (arXiv:1905.13727), without the error feedback, which activations cannot have.
#include <fmt/format.h>

#include "train/wire/basis_codec.h"
#include "train/wire/codecs.h"

namespace forebay::train {
namespace {

class PowerSgdCodec : public BasisCodec {
 public:
  PowerSgdCodec(const CodecOptions& options, int64_t width) : BasisCodec(options, width) {}

  std::string name() const override { return fmt::format("powersgd r={}", rank()); }
  Bias bias() const override { return Bias::kBiased; }
  double forward_bits(int64_t) const override { return 16.0 * static_cast<double>(rank()); }
  double backward_bits(int64_t width) const override { return forward_bits(width); }

 protected:
  std::vector<Field> fields(int64_t, Leg) const override { return {{rank(), 16}}; }
  Fields measure(const torch::Tensor& x_NW, const WireKey& key, Leg) override {
    return {project(x_NW, key).to(torch::kBFloat16)};
  }
  torch::Tensor rebuild(const Fields& fields, int64_t, const WireKey& key, Leg,
                        const torch::Tensor&) override {
    return expand(fields[0].to(torch::kFloat), key);
  }
};

}  // namespace

std::unique_ptr<Codec> make_powersgd_codec(const CodecOptions& options, int64_t width) {
  return std::make_unique<PowerSgdCodec>(options, width);
}

}  // namespace forebay::train
