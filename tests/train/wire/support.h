/// What the tests of codecs share: rows, and a codec or a failed test.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "train/wire/codecs.h"
#include "train/wire/make_codec.h"

namespace forebay::train::testing {

/// Without the self-test, which has tests of its own.
inline std::unique_ptr<Codec> codec_of(CodecOptions options, int64_t width) {
  options = resolve_codec_options(options, width).value();
  if (options.name == "prf") return make_prf_codec(options, width);
  if (options.name == "prf-sr") return make_prf_rounding_codec(options, width);
  if (options.name == "sr" || options.name == "rn") return make_rounding_codec(options);
  if (options.name == "powersgd") return make_powersgd_codec(options, width);
  if (options.name.starts_with("frlr")) return make_frlr_codec(options, width);
  return make_dense_codec();
}

inline std::unique_ptr<Codec> default_codec(const std::string& name, int64_t width) {
  return codec_of(CodecOptions{.name = name}, width);
}

inline torch::Tensor gaussian(int64_t n, int64_t width, uint64_t seed = 1) {
  torch::manual_seed(seed);
  return torch::randn({n, width});
}

/// E |x^ - x|^2 / |x|^2 over the rows and over `n_steps` keys.
inline double error_energy(Codec& codec, const torch::Tensor& x_NW, int n_steps) {
  double sum = 0;
  for (int step = 0; step < n_steps; ++step)
    sum += (codec.view(x_NW, {.seed = 9, .step = step}, nullptr) - x_NW).square().sum().item<double>();
  return sum / n_steps / x_NW.square().sum().item<double>();
}

inline const std::vector<std::string>& all_codecs() {
  static const std::vector<std::string> names = {"dense",  "prf",      "sr",   "rn",
                                                 "prf-sr", "powersgd", "frlr", "frlr-unbiased"};
  return names;
}

}  // namespace forebay::train::testing
