// "prf-sr": the PRF's exact-k, then rounding at random of what is left. Deletion and rounding are
// independent, so the error energy is (W/k)(1 + v) - 1, v the rounding's own.
#include <fmt/format.h>

#include "train/wire/codecs.h"
#include "train/wire/field_codec.h"
#include "train/wire/gain.h"
#include "train/wire/quantizer.h"
#include "train/wire/unshared_state.h"

namespace forebay::train {
namespace {

class PrfRoundingCodec : public FieldCodec {
 public:
  PrfRoundingCodec(const CodecOptions& options, int64_t width)
      : masks_(options.k, options.scope),
        gain_(mask_gain(options, width)),
        quantizer_(options, /*stochastic=*/true),
        options_(options) {}

  std::string name() const override { return fmt::format("prf-sr k={} b={}", masks_.k(), quantizer_.bits()); }
  Bias bias() const override { return gain_.bias; }
  double forward_bits(int64_t) const override { return quantizer_.row_bits(masks_.k()); }
  double backward_bits(int64_t width) const override { return forward_bits(width); }
  std::map<std::string, torch::Tensor> state() const override { return unshared_state(quantizer_, options_); }
  Result<void> restore(const std::map<std::string, torch::Tensor>& state) override {
    return restore_unshared(state, options_, quantizer_);
  }

 protected:
  std::vector<Field> fields(int64_t, Leg) const override {
    return {{quantizer_.n_groups(masks_.k()), 16}, {masks_.k(), quantizer_.bits()}};
  }
  Fields measure(const torch::Tensor& x_NW, const WireKey& key, Leg leg) override {
    const Subset subset = masks_.subset(key, x_NW.size(0), x_NW.size(1), x_NW.device());
    Quantizer::Coded coded = quantizer_.quantize(subset.take(x_NW), key, leg);
    return {std::move(coded.scales_NG), std::move(coded.codes_NW)};
  }
  torch::Tensor rebuild(const Fields& fields, int64_t width, const WireKey& key, Leg,
                        const torch::Tensor&) override {
    const Subset subset = masks_.subset(key, fields[1].size(0), width, fields[1].device());
    return subset.spread(quantizer_.dequantize({fields[1], fields[0]}).mul_(gain_.value));
  }

 private:
  MaskSource masks_;
  MaskGain gain_;
  Quantizer quantizer_;
  CodecOptions options_;
};

}  // namespace

std::unique_ptr<Codec> make_prf_rounding_codec(const CodecOptions& options, int64_t width) {
  return std::make_unique<PrfRoundingCodec>(options, width);
}

}  // namespace forebay::train
