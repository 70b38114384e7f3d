// x^ = g * (m . x) with m the PRF's mask of exactly k ones; the gradient likewise with the same mask, since
// J = g diag(m).
#include <fmt/format.h>

#include "train/wire/codecs.h"
#include "train/wire/field_codec.h"
#include "train/wire/gain.h"

namespace forebay::train {
namespace {

class PrfCodec : public FieldCodec {
 public:
  PrfCodec(const CodecOptions& options, int64_t width)
      : masks_(options.k, options.scope), gain_(mask_gain(options, width)) {}

  std::string name() const override { return fmt::format("prf k={}", masks_.k()); }
  Bias bias() const override { return gain_.bias; }
  double forward_bits(int64_t) const override { return 16.0 * static_cast<double>(masks_.k()); }
  double backward_bits(int64_t width) const override { return forward_bits(width); }

 protected:
  std::vector<Field> fields(int64_t, Leg) const override { return {{masks_.k(), 16}}; }
  Fields measure(const torch::Tensor& x_NW, const WireKey& key, Leg) override {
    const Subset subset = masks_.subset(key, x_NW.size(0), x_NW.size(1), x_NW.device());
    return {subset.take(x_NW).to(torch::kBFloat16)};
  }
  torch::Tensor rebuild(const Fields& fields, int64_t width, const WireKey& key, Leg,
                        const torch::Tensor&) override {
    const Subset subset = masks_.subset(key, fields[0].size(0), width, fields[0].device());
    return subset.spread(fields[0].to(torch::kFloat).mul_(gain_.value));
  }

 private:
  MaskSource masks_;
  MaskGain gain_;
};

}  // namespace

std::unique_ptr<Codec> make_prf_codec(const CodecOptions& options, int64_t width) {
  return std::make_unique<PrfCodec>(options, width);
}

}  // namespace forebay::train
