#include "train/wire/codecs.h"
#include "train/wire/field_codec.h"

namespace forebay::train {
namespace {

class DenseCodec : public FieldCodec {
 public:
  std::string name() const override { return "dense bf16"; }
  // Of numbers that bf16 holds; every codec carries its numbers so.
  Bias bias() const override { return Bias::kUnbiased; }
  double forward_bits(int64_t width) const override { return 16.0 * static_cast<double>(width); }
  double backward_bits(int64_t width) const override { return forward_bits(width); }

 protected:
  std::vector<Field> fields(int64_t width, Leg) const override { return {{width, 16}}; }
  Fields measure(const torch::Tensor& x_NW, const WireKey&, Leg) override {
    return {x_NW.to(torch::kBFloat16)};
  }
  torch::Tensor rebuild(const Fields& fields, int64_t, const WireKey&, Leg, const torch::Tensor&) override {
    return fields[0].to(torch::kFloat);
  }
};

}  // namespace

std::unique_ptr<Codec> make_dense_codec() {
  return std::make_unique<DenseCodec>();
}

}  // namespace forebay::train
