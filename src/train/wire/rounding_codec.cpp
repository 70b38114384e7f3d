// "sr" and "rn": all coordinates, b bits each. The two differ in one flag of the quantizer.
#include <fmt/format.h>

#include "train/wire/codecs.h"
#include "train/wire/field_codec.h"
#include "train/wire/quantizer.h"
#include "train/wire/unshared_state.h"

namespace forebay::train {
namespace {

class RoundingCodec : public FieldCodec {
 public:
  explicit RoundingCodec(const CodecOptions& options)
      : quantizer_(options, options.name == "sr"), options_(options) {}

  std::string name() const override {
    return fmt::format("{} b={}{}", options_.name, options_.bits, options_.share ? "" : " unshared");
  }
  Bias bias() const override { return options_.name == "sr" ? Bias::kUnbiased : Bias::kBiased; }
  double forward_bits(int64_t width) const override { return quantizer_.row_bits(width); }
  double backward_bits(int64_t width) const override { return forward_bits(width); }
  std::map<std::string, torch::Tensor> state() const override { return unshared_state(quantizer_, options_); }
  Result<void> restore(const std::map<std::string, torch::Tensor>& state) override {
    return restore_unshared(state, options_, quantizer_);
  }

 protected:
  std::vector<Field> fields(int64_t width, Leg) const override {
    return {{quantizer_.n_groups(width), 16}, {width, quantizer_.bits()}};
  }
  Fields measure(const torch::Tensor& x_NW, const WireKey& key, Leg leg) override {
    Quantizer::Coded coded = quantizer_.quantize(x_NW, key, leg);
    return {std::move(coded.scales_NG), std::move(coded.codes_NW)};
  }
  torch::Tensor rebuild(const Fields& fields, int64_t, const WireKey&, Leg, const torch::Tensor&) override {
    return quantizer_.dequantize({fields[1], fields[0]});
  }

 private:
  Quantizer quantizer_;
  CodecOptions options_;
};

}  // namespace

std::unique_ptr<Codec> make_rounding_codec(const CodecOptions& options) {
  return std::make_unique<RoundingCodec>(options);
}

}  // namespace forebay::train
