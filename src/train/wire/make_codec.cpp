#include "train/wire/make_codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/wire/codecs.h"
#include "train/wire/prf.h"
#include "train/wire/self_test.h"

namespace forebay::train {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"dense",  "prf",      "sr",   "rn",
                                                    "prf-sr", "powersgd", "frlr", "frlr-unbiased"};
// The study's split of the residual's coordinates: 28 of 1536.
constexpr double kResidualShare = 28.0 / 1536;

int64_t at_least_one(double x) {
  return std::max<int64_t>(1, std::llround(x));
}

Error wrong(std::string_view setting, const auto& value, std::string_view wanted) {
  return Error{Code::kInvalidArgument, fmt::format("codec: {} is {}, wanted {}", setting, value, wanted)};
}

Result<void> check_range(std::string_view setting, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return wrong(setting, value, fmt::format("{} to {}", low, high));
}

void fill_defaults(CodecOptions& o, int64_t width) {
  const double w = static_cast<double>(width);
  const int64_t kept = at_least_one(o.keep * w);
  if (o.k == 0) {
    const double bits = o.bits + 16.0 / static_cast<double>(o.group);
    o.k = o.name == "prf-sr" ? std::min(width, at_least_one(static_cast<double>(kept) * 16 / bits)) : kept;
  }
  if (o.rank == 0) o.rank = o.name == "powersgd" ? kept : at_least_one(w / 32);
  if (o.k_residual == 0) o.k_residual = at_least_one(w * kResidualShare);
  if (o.gamma_max == 0) o.gamma_max = w / static_cast<double>(o.k_residual);
}

std::unique_ptr<Codec> construct(const CodecOptions& o, int64_t width) {
  if (o.name == "prf") return make_prf_codec(o, width);
  if (o.name == "sr" || o.name == "rn") return make_rounding_codec(o);
  if (o.name == "prf-sr") return make_prf_rounding_codec(o, width);
  if (o.name == "powersgd") return make_powersgd_codec(o, width);
  if (o.name == "frlr" || o.name == "frlr-unbiased") return make_frlr_codec(o, width);
  return make_dense_codec();
}

}  // namespace

Result<CodecOptions> resolve_codec_options(const CodecOptions& options, int64_t width) {
  CodecOptions o = options;
  if (std::find(kNames.begin(), kNames.end(), o.name) == kNames.end())
    return wrong("name", o.name, fmt::format("one of {}", fmt::join(kNames, ", ")));
  TRY(check_range("width", width, 1, int64_t{1} << kPrfIndexBits));
  if (!(o.keep > 0 && o.keep <= 1)) return wrong("keep", o.keep, "above 0, at most 1");
  TRY(check_range("bits", o.bits, 1, 8));
  TRY(check_range("group", o.group, 1, int64_t{1} << kPrfIndexBits));
  TRY(check_range("k", o.k, 0, width));
  TRY(check_range("rank", o.rank, 0, width));
  TRY(check_range("k_residual", o.k_residual, 0, width));
  if (!(o.gamma_max >= 0)) return wrong("gamma_max", o.gamma_max, "0 or more");
  fill_defaults(o, width);
  if (o.gain == Gain::kKeepRate && o.name == "prf" &&
      o.k != at_least_one(o.keep * static_cast<double>(width)))
    return wrong("k", o.k,
                 fmt::format("round(keep * W) = {} when the gain is 1/keep",
                             at_least_one(o.keep * static_cast<double>(width))));
  if (o.gain == Gain::kKeepRate && o.name == "prf-sr") return wrong("gain", "1/keep", "W/k for prf-sr");
  return o;
}

Result<std::unique_ptr<Codec>> make_codec(const CodecOptions& options, int64_t width) {
  const CodecOptions resolved = TRY(resolve_codec_options(options, width));
  // A codec of its own: the test leaves no trace in the one that is used.
  const std::unique_ptr<Codec> tested = construct(resolved, width);
  TRY(self_test(*tested, width));
  return construct(resolved, width);
}

}  // namespace forebay::train
