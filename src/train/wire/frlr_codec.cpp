// "frlr", "frlr-unbiased": c = x Q, and of what is left, e = x - c Q^T, the PRF's k' coordinates:
//
//   x^ = c Q^T + gamma * scatter(e_S)
//
// Unbiased: gamma = W / k'. Norm-matched: gamma = min(gamma_max, |e| / |e_S|), with |e| sent. With gamma
// held, J = Q Q^T + gamma M (I - Q Q^T), so the gradient's way back is rebuilt from Q^T g and g_S:
//
//   J^T g = Q (Q^T g) + gamma (I - Q Q^T) scatter(g_S)
#include <fmt/format.h>

#include "core/ensure.h"
#include "train/wire/basis_codec.h"
#include "train/wire/codecs.h"

namespace forebay::train {
namespace {

class FrlrCodec : public BasisCodec {
 public:
  FrlrCodec(const CodecOptions& options, int64_t width)
      : BasisCodec(options, width),
        is_unbiased_(options.name == "frlr-unbiased"),
        gamma_(is_unbiased_ ? static_cast<double>(width) / static_cast<double>(options.k_residual)
                            : options.gamma_max),
        masks_(options.k_residual, options.scope) {}

  std::string name() const override {
    return fmt::format("frlr{} r={} k={}", is_unbiased_ ? "-unbiased" : "", rank(), masks_.k());
  }
  Bias bias() const override { return is_unbiased_ ? Bias::kUnbiased : Bias::kBiased; }
  double forward_bits(int64_t width) const override { return backward_bits(width) + (is_unbiased_ ? 0 : 16); }
  double backward_bits(int64_t) const override { return 16.0 * static_cast<double>(rank() + masks_.k()); }

 protected:
  std::vector<Field> fields(int64_t, Leg leg) const override {
    if (leg == Leg::kBackward || is_unbiased_) return {{rank(), 16}, {masks_.k(), 16}};
    return {{rank(), 16}, {masks_.k(), 16}, {1, 16}};
  }

  Fields measure(const torch::Tensor& x_NW, const WireKey& key, Leg leg) override {
    const Subset subset = masks_.subset(key, x_NW.size(0), x_NW.size(1), x_NW.device());
    torch::Tensor c_NR = project(x_NW, key).to(torch::kBFloat16);
    if (leg == Leg::kBackward) return {std::move(c_NR), subset.take(x_NW).to(torch::kBFloat16)};
    // Of c as it is sent: what its rounding loses is part of the residual.
    const torch::Tensor e_NW = x_NW - expand(c_NR.to(torch::kFloat), key);
    Fields sent = {std::move(c_NR), subset.take(e_NW).to(torch::kBFloat16)};
    if (!is_unbiased_) sent.push_back(e_NW.norm(2, {1}, /*keepdim=*/true).to(torch::kBFloat16));
    return sent;
  }

  torch::Tensor link(const Fields& forward) override {
    if (is_unbiased_) return {};
    return norm_matching_gamma(forward[1].to(torch::kFloat), forward[2].to(torch::kFloat));
  }

  torch::Tensor rebuild(const Fields& fields, int64_t width, const WireKey& key, Leg leg,
                        const torch::Tensor& saved) override {
    ENSURE(is_unbiased_ || saved.defined(), "frlr: a gradient without the gamma of its forward pass");
    const Subset subset = masks_.subset(key, fields[0].size(0), width, fields[0].device());
    const torch::Tensor c_NR = fields[0].to(torch::kFloat);
    const torch::Tensor s_NW = subset.spread(scaled(fields[1].to(torch::kFloat), saved));
    if (leg == Leg::kForward) return expand(c_NR, key).add_(s_NW);
    return expand(c_NR - project(s_NW, key), key).add_(s_NW);
  }

 private:
  /// [N, 1].
  torch::Tensor norm_matching_gamma(const torch::Tensor& part_NK, const torch::Tensor& norm_N1) const {
    const torch::Tensor part_norm_N1 = part_NK.norm(2, {1}, /*keepdim=*/true);
    // 0 / 0 where nothing is left: then any gamma does.
    return (norm_N1 / part_norm_N1).masked_fill_(part_norm_N1 == 0, gamma_).clamp_max_(gamma_);
  }
  torch::Tensor scaled(const torch::Tensor& part_NK, const torch::Tensor& gamma_N1) const {
    return is_unbiased_ ? part_NK * gamma_ : part_NK * gamma_N1;
  }

  bool is_unbiased_;
  double gamma_;  // the unbiased gain, or the limit of the norm-matching one
  MaskSource masks_;
};

}  // namespace

std::unique_ptr<Codec> make_frlr_codec(const CodecOptions& options, int64_t width) {
  return std::make_unique<FrlrCodec>(options, width);
}

}  // namespace forebay::train
